//go:build unix

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"

	"openbot/build/testenv/services"
)

// policyFile is where Debian asks whether a package may start its service. The
// packages must not: what they start would outlive the tests.
const policyFile = "/usr/sbin/policy-rc.d"

// installMissing installs what is missing when this is Debian and the user is root,
// and else says in one line what to install. It gives the path of the browser if
// that was asked for.
func installMissing(chromium bool) (browser string, err error) {
	var packages, faults []string
	need := func(name string, fault error) {
		if fault != nil {
			packages, faults = append(packages, name), append(faults, fault.Error())
		}
	}
	_, fault := services.FindPostgres()
	need("postgresql", fault)
	_, fault = services.FindRedis()
	need("redis-server", fault)
	if chromium {
		browser, fault = findChromium()
		need("chromium", fault)
	}
	if len(packages) == 0 {
		return browser, nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return "", errors.New(strings.Join(faults, "; "))
	}
	fmt.Fprintln(os.Stderr, "testenv: installing", strings.Join(packages, ", "))
	if err := aptInstall(packages); err != nil {
		return "", fmt.Errorf("%s cannot be installed: %w", strings.Join(packages, ", "), err)
	}
	if chromium {
		return findChromium()
	}
	return "", nil
}

func findChromium() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("Chromium is not installed: install it (Debian: apt-get install chromium)")
}

func aptInstall(packages []string) (err error) {
	restore, err := forbidServices(policyFile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, restore()) }()
	options := []string{"-qq", "-o", "DPkg::Lock::Timeout=120"}
	install := append(append(options[:len(options):len(options)], "install", "-y", "--no-install-recommends"), packages...)
	for _, arguments := range [][]string{append(options[:len(options):len(options)], "update"), install} {
		command := exec.Command("apt-get", arguments...)
		command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		command.Stdout, command.Stderr = os.Stderr, os.Stderr // the command's own output stays clean
		if err := command.Run(); err != nil {
			return err
		}
	}
	return nil
}

// forbidServices puts a policy in place that lets no package start a service. A
// policy that stands there already is the owner's and stays.
func forbidServices(path string) (restore func() error, err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return func() error { return nil }, nil
	}
	if err != nil {
		return nil, err
	}
	const actionForbidden = 101
	_, err = fmt.Fprintf(file, "#!/bin/sh\nexit %d\n", actionForbidden)
	restore = func() error { return os.Remove(path) }
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, errors.Join(err, restore())
	}
	return restore, nil
}
