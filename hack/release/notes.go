// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"
)

// section is the part of CHANGELOG.md for one version: "## 0.1.0 (2026-12-01)", or "(unreleased)".
type section struct{ heading, text string }

// sectionOf returns the section of a version.
func sectionOf(changes, version string) (section, error) {
	for _, part := range strings.Split("\n"+changes, "\n## ")[1:] {
		heading, text, _ := strings.Cut(part, "\n")
		if name, _, _ := strings.Cut(heading, " "); name == version {
			return section{heading, strings.TrimSpace(text)}, nil
		}
	}
	return section{}, fmt.Errorf("CHANGELOG.md has no section %q", "## "+version)
}

var dated = regexp.MustCompile(` \(\d{4}-\d{2}-\d{2}\)$`)

// checkDate returns an error if the section has no date. The packages contain CHANGELOG.md.
func (s section) checkDate() error {
	if !dated.MatchString(s.heading) {
		return fmt.Errorf("CHANGELOG.md: section %q needs the date of the release: (YYYY-MM-DD)", "## "+s.heading)
	}
	return nil
}

// links matches links to files of the repository, which the notes cannot contain.
var links = regexp.MustCompile(`\[([^\]]+)\]\([^):]+\)`)

// notes returns the release notes, in Markdown.
func (s section) notes(version string) string {
	return fmt.Sprintf("# roced %s\n\n%s\n", version, links.ReplaceAllString(s.text, "$1"))
}
