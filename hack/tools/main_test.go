// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/roced/roced/internal/tools"
)

// TestContributingListsTools compares the list in CONTRIBUTING.md with the one that this command prints.
func TestContributingListsTools(t *testing.T) {
	text, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), table()) {
		t.Errorf("the list of CONTRIBUTING.md is out of date; go run ./hack/tools prints it:\n%s", table())
	}
}

// TestTargetsCheckTools checks that each make target with the name of a purpose checks its tools first, or runs a
// command of hack that does.
func TestTargetsCheckTools(t *testing.T) {
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	checked := map[string]string{}
	for _, target := range regexp.MustCompile(`(?m)^([a-z-]+):( need-[a-z-]+)?.*## .*\n(\tgo run \./hack/)?`).FindAllStringSubmatch(string(text), -1) {
		checked[target[1]] = target[2] + target[3]
		if purpose, is := strings.CutPrefix(target[2], " need-"); is {
			if _, err := tools.Needs(purpose); err != nil {
				t.Errorf("make %s: %v", target[1], err)
			}
		}
	}
	for _, p := range tools.Purposes {
		if how, is := checked[p.Name]; is && how == "" {
			t.Errorf("make %s does not check its tools first", p.Name)
		}
	}
	if len(checked) < 20 {
		t.Errorf("%d targets", len(checked))
	}
}
