// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/roced/roced/internal/tools"
)

// describe sets the version and the time from the tag and the commit, unless they are given. SOURCE_DATE_EPOCH allows
// others to reproduce a build (reproducible-builds.org).
func (r *release) describe() error {
	if r.version == "" {
		described, err := git("describe", "--tags", "--match", "v[0-9]*")
		if err != nil {
			described = "" // no tag yet
		}
		r.version = versionOf(described)
	}
	if r.version != untagged {
		r.tag = "v" + r.version
	}
	epoch, given := os.LookupEnv("SOURCE_DATE_EPOCH")
	if !given {
		var err error
		if epoch, err = git("log", "-1", "--format=%ct"); err != nil {
			return fmt.Errorf("time of the commit: %w; without git, set SOURCE_DATE_EPOCH", err)
		}
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	r.time = time.Unix(seconds, 0).UTC()
	return nil
}

// untagged is the version without a tag.
const untagged = "0.0.0~dev"

// versionOf converts the output of git describe to a version: commits after a tag are newer than the tag.
func versionOf(described string) string {
	version := strings.TrimPrefix(described, "v")
	if version == "" {
		return untagged
	}
	if tag, after, more := strings.Cut(version, "-"); more && strings.Contains(after, "-g") {
		return tag + "+" + strings.ReplaceAll(after, "-", ".")
	}
	return version
}

func git(args ...string) (string, error) {
	if err := tools.Missing("git"); err != nil {
		return "", err
	}
	out, err := exec.Command("git", args...).Output()
	return strings.TrimSpace(string(out)), err
}
