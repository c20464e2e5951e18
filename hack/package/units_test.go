// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/roced/roced/internal/needs"
)

// mostExposure is the maximum exposure level (0 to 10) of systemd-analyze for a unit.
const mostExposure = 2.0

// TestOneImageName checks that the Makefile, the manifests and the documents use the name of the image that "make
// image" writes.
func TestOneImageName(t *testing.T) {
	found := 0
	for _, pattern := range []string{"Makefile", "docs/*.md", "README.md", "deploy/kubernetes/Containerfile", "deploy/*/*.md", "hack/containers/*"} {
		files, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range regexp.MustCompile(`localhost/roced:[\w.-]+`).FindAllString(string(text), -1) {
				if found++; name != imageName {
					t.Errorf("%s: %s, want %s", file, name, imageName)
				}
			}
		}
	}
	if found == 0 {
		t.Error("no file contains the image's name")
	}
}

var exposure = regexp.MustCompile(`exposure level for .*: ([0-9.]+)`)

// TestUnitsAreHardened checks the exposure level of the units, whose comments state the exceptions from hardening.
func TestUnitsAreHardened(t *testing.T) {
	needs.Tools(t, "systemd-analyze")
	for _, unit := range []string{"root/roced.service", "root/roced@.service"} {
		out, err := needs.Command(t, "systemd-analyze", "security", "--offline=true", "--no-pager", unit).CombinedOutput()
		found := exposure.FindSubmatch(out)
		if err != nil || found == nil {
			t.Fatalf("%s: %v: %s", unit, err, out)
		}
		if level, err := strconv.ParseFloat(string(found[1]), 64); err != nil || level > mostExposure {
			t.Errorf("%s: exposure %s, want at most %.1f: %s", unit, found[1], mostExposure, out)
		}
	}
}
