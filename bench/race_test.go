//go:build linux && race

package main

// buildFlags let the binary share the build cache with tests that run with -race.
var buildFlags = []string{"-race"}
