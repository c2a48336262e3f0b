//go:build unix && !linux

package main

// inMemory knows of no folder in memory.
func inMemory() (folder string, remove func()) { return "", nil }
