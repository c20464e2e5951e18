// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// basePackages contains packages with programs of the cases, and with the libraries that they load besides ours. Cases
// can add more (testCase.from).
var basePackages = []string{
	"ibverbs-utils", "rdmacm-utils", "perftest", "qperf",
	"iperf3", "libiperf0", "libsctp1",
	"libibverbs1", "librdmacm1", "ibverbs-providers", "libibumad3", "libpci3", "libnl-3-200", "libnl-route-3-200",
}

// byRelease groups packages by their Debian release: "trixie/libc6" is from trixie, and "perftest" from this machine's
// release.
func byRelease(packages []string) map[string][]string {
	all := map[string][]string{"": nil}
	for _, name := range packages {
		release, inIt, other := strings.Cut(name, "/")
		if !other {
			release, inIt = "", name
		}
		all[release] = append(all[release], inIt)
	}
	return all
}

// unpack returns a folder with the packages' files. Downloaded packages are cached. It removes Debian's libibverbs.so.1
// and librdmacm.so.1, so that programs cannot load them.
func unpack(ctx context.Context, release string, packages []string) (root string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	cache = filepath.Join(cache, "roced", "programs", release)
	downloads, root := filepath.Join(cache, "downloads"), filepath.Join(cache, "root")
	if err := os.MkdirAll(downloads, 0o755); err != nil {
		return "", err
	}
	apt := &archive{release: release, cache: cache}
	for _, name := range packages {
		there, _ := filepath.Glob(filepath.Join(downloads, name+"_*.deb"))
		if len(there) > 0 {
			continue
		}
		if err := apt.download(ctx, downloads, name); err != nil {
			return "", fmt.Errorf("download %s: %w", name, err)
		}
		there, _ = filepath.Glob(filepath.Join(downloads, name+"_*.deb"))
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

// archive is Debian's archive: this machine's release with its apt configuration, or another release with its own
// lists.
type archive struct {
	release string
	cache   string
	options []string // options of apt-get for another release; nil before update
}

func (a *archive) download(ctx context.Context, to, name string) error {
	if a.release != "" && a.options == nil {
		if err := a.update(ctx); err != nil {
			return err
		}
	}
	return aptGet(ctx, to, append(a.options, "download", name)...)
}

// update fetches the lists of another release, separate from this machine's.
func (a *archive) update(ctx context.Context) error {
	apt := filepath.Join(a.cache, "apt")
	for _, folder := range []string{"lists/partial", "archives/partial", "none"} {
		if err := os.MkdirAll(filepath.Join(apt, folder), 0o755); err != nil {
			return err
		}
	}
	const keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
	site, err := mirror(ctx)
	if err != nil {
		return err
	}
	source := fmt.Sprintf("deb [signed-by=%s] %s %s main\n", keys, site, a.release)
	for name, text := range map[string]string{"sources.list": source, "status": ""} {
		if err := os.WriteFile(filepath.Join(apt, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	a.options = []string{
		"-o", "Dir::Etc::sourcelist=" + apt + "/sources.list", "-o", "Dir::Etc::sourceparts=-",
		"-o", "Dir::Etc::preferences=" + apt + "/none/none", "-o", "Dir::Etc::preferencesparts=" + apt + "/none",
		"-o", "Dir::State::lists=" + apt + "/lists", "-o", "Dir::State::status=" + apt + "/status",
		"-o", "Dir::Cache=" + apt, "-o", "Dir::Cache::archives=archives/",
		"-o", "APT::Sandbox::User=root", "-o", "Debug::NoLocking=1",
	}
	return aptGet(ctx, apt, append(a.options, "update")...)
}

// mirror returns the Debian mirror of this machine's apt.
func mirror(ctx context.Context) (string, error) {
	sites, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(SITE)|$(LABEL)").Output()
	if err != nil {
		return "", fmt.Errorf("query the Debian mirror of this machine: %w", err)
	}
	for line := range strings.Lines(string(sites)) {
		if site, label, _ := strings.Cut(strings.TrimSpace(line), "|"); label == "Debian" {
			return site, nil
		}
	}
	return "", errors.New("apt has no Debian archive; run apt-get update")
}

func aptGet(ctx context.Context, dir string, args ...string) error {
	get := exec.CommandContext(ctx, "apt-get", append([]string{"-q"}, args...)...)
	get.Dir = dir
	if out, err := get.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s (apt-get update?)", err, strings.TrimSpace(string(out)))
	}
	return nil
}
