//go:build linux && !race

package main

var buildFlags []string
