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

// mostExposure is what systemd-analyze may say of a unit at most, of 10.
const mostExposure = 2.0

// TestOneImageName: what make image writes has the name that the Makefile, the manifests and the documents use.
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
		t.Error("the image is named nowhere")
	}
}

var exposure = regexp.MustCompile(`exposure level for .*: ([0-9.]+)`)

// TestUnitsAreHardened: exceptions from hardening are intentional, and the unit states the reason.
func TestUnitsAreHardened(t *testing.T) {
	needs.Tools(t, "systemd-analyze")
	for _, unit := range []string{"root/roced.service", "root/roced@.service"} {
		out, err := needs.Command(t, "systemd-analyze", "security", "--offline=true", "--no-pager", unit).CombinedOutput()
		found := exposure.FindSubmatch(out)
		if err != nil || found == nil {
			t.Fatalf("%s: %v: %s", unit, err, out)
		}
		if level, err := strconv.ParseFloat(string(found[1]), 64); err != nil || level > mostExposure {
			t.Errorf("%s: exposure %s, at most %.1f: %s", unit, found[1], mostExposure, out)
		}
	}
}
