package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// basePackages are those whose programs run, and the libraries that they load beside ours. Cases name more (testCase.from).
var basePackages = []string{
	"ibverbs-utils", "rdmacm-utils", "perftest", "qperf",
	"iperf3", "libiperf0", "libsctp1",
	"libibverbs1", "librdmacm1", "ibverbs-providers", "libibumad3", "libpci3", "libnl-3-200", "libnl-route-3-200",
}

// unpack gives a folder with the packages' files. What is in the cache is not downloaded again. Debian's libibverbs.so.1
// and librdmacm.so.1 are taken out, so that no program finds them.
func unpack(ctx context.Context, packages []string) (root string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	cache = filepath.Join(cache, "roced", "programs")
	downloads, root := filepath.Join(cache, "downloads"), filepath.Join(cache, "root")
	if err := os.MkdirAll(downloads, 0o755); err != nil {
		return "", err
	}
	for _, name := range packages {
		if there, _ := filepath.Glob(filepath.Join(downloads, name+"_*.deb")); len(there) > 0 {
			continue
		}
		get := exec.CommandContext(ctx, "apt-get", "-q", "download", name)
		get.Dir = downloads
		if out, err := get.CombinedOutput(); err != nil {
			return "", fmt.Errorf("download %s: %w: %s (apt-get update?)", name, err, strings.TrimSpace(string(out)))
		}
		there, _ := filepath.Glob(filepath.Join(downloads, name+"_*.deb"))
		for _, file := range there {
			if out, err := exec.CommandContext(ctx, "dpkg", "-x", file, root).CombinedOutput(); err != nil {
				return "", fmt.Errorf("unpack %s: %w: %s", file, err, out)
			}
		}
	}
	for _, pattern := range []string{"libibverbs.so*", "librdmacm.so*"} {
		files, _ := filepath.Glob(filepath.Join(root, "usr/lib/*", pattern))
		for _, file := range files {
			if err := os.Remove(file); err != nil {
				return "", err
			}
		}
	}
	return root, nil
}
