// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"regexp"
	"strings"

	"github.com/roced/roced/cmd/roced/internal/config"
)

var (
	keyLine   = regexp.MustCompile(`^#?([a-z_]+) = `)
	tableLine = regexp.MustCompile(`^#?(\[.*\])$`)
)

// tomlPage returns roced.toml(5). Comments of the reference file describe the keys or table below them.
func tomlPage() string {
	p := newPage("roced.toml", "5", "configuration of the roced service")
	p.section("DESCRIPTION")
	p.text("The file is TOML (toml.io). Unknown keys, values of another type and duplicate keys are errors.\n" +
		"\"roced config check FILE\" reports all errors, and \"roced config example\" prints the text of this page as a file.\n" +
		"Sizes are bytes, or strings with KiB, MiB, GiB or TiB. Durations are strings with a unit: \"20us\", \"1.5ms\".")
	p.section("KEYS")
	var comment []string
	for _, line := range strings.Split(config.Reference, "\n") {
		switch {
		case keyLine.MatchString(line):
			p.keys(comment, line)
			comment = nil
		case tableLine.MatchString(line):
			p.WriteString(".SS " + escape(tableLine.FindStringSubmatch(line)[1]) + "\n")
			p.text(joined(comment))
			comment = nil
		case line == "":
			p.loose(comment)
			comment = nil
		default:
			comment = append(comment, strings.TrimPrefix(line, "# "))
		}
	}
	p.section("SEE ALSO")
	p.WriteString(bold("roced") + "(8), " + bold("roced-run") + "(8), " + bold("roced-config-check") + "(8)\n")
	return p.String()
}

// keys writes a key with its default. A key without a comment belongs to the one above.
func (p *page) keys(comment []string, line string) {
	line = strings.TrimPrefix(line, "#")
	p.WriteString(".TP\n" + bold(line) + "\n")
	if len(comment) > 0 {
		p.WriteString(escape(joined(comment)) + "\n")
	}
}

// loose writes a comment that does not describe a key.
func (p *page) loose(comment []string) {
	if len(comment) > 0 {
		p.WriteString(".PP\n")
		p.text(joined(comment))
	}
}

func joined(comment []string) string { return strings.Join(comment, "\n") }
