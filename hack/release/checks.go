// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// plain matches a version without a suffix, or with one that Debian and Fedora sort before the version (0.1.0~rc1).
var plain = regexp.MustCompile(`^\d+\.\d+\.\d+(~[a-z0-9.]+)?$`)

// check returns the release notes, or an error that lists all missing requirements of a release.
func (r *release) check(ctx context.Context) (string, error) {
	if !plain.MatchString(r.version) {
		return "", fmt.Errorf("invalid version %q: set VERSION (-version), such as 0.1.0", r.version)
	}
	changes, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return "", err
	}
	section, err := sectionOf(string(changes), r.version)
	if err != nil {
		return "", err
	}
	missing := []error{r.checkKey(ctx)}
	if !r.draft {
		missing = append(missing, section.checkDate(), r.checkCommit(ctx))
	}
	return section.notes(r.version), errors.Join(missing...)
}

// checkKey returns an error if the key is not set, or if gpg cannot sign with it.
func (r *release) checkKey(ctx context.Context) error {
	switch {
	case r.key == "" && r.draft:
		return nil
	case r.key == "":
		return errors.New("no key: set KEY (-key) to the fingerprint of a secret key that gpg has; " +
			"a draft (DRAFT=yes, -draft) can be unsigned")
	}
	_, err := output(ctx, "", "gpg", "--batch", "--list-secret-keys", r.key)
	return err
}

// checkCommit returns an error if the checkout has changes, or if the tag is on another commit.
func (r *release) checkCommit(ctx context.Context) error {
	changed, err := output(ctx, "", "git", "status", "--porcelain")
	if err != nil {
		return err
	}
	if len(changed) > 0 {
		return fmt.Errorf("uncommitted changes:\n%s", changed)
	}
	tag := "v" + r.version
	tagged, err := output(ctx, "", "git", "rev-list", "-n", "1", "refs/tags/"+tag)
	if err != nil {
		return nil // the tag does not exist yet
	}
	head, err := output(ctx, "", "git", "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	if string(tagged) != string(head) {
		return fmt.Errorf("tag %s is on commit %.12s, and HEAD is %.12s", tag, tagged, strings.TrimSpace(string(head)))
	}
	return nil
}
