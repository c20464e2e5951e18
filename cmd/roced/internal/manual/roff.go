// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"fmt"
	"strings"
)

// page is a manual page under construction.
type page struct{ strings.Builder }

// newPage starts a page. It has no date, so that builds are reproducible.
func newPage(name, section, short string) *page {
	p := &page{}
	fmt.Fprintf(p, ".TH %s %s \"\" roced \"roced manual\"\n", strings.ToUpper(escape(name)), section)
	p.section("NAME")
	fmt.Fprintf(p, "%s \\- %s\n", escape(name), escape(lowerFirst(short)))
	return p
}

func (p *page) section(title string) { fmt.Fprintf(p, ".SH %s\n", title) }

// text writes paragraphs and lists. A line that starts with "- " starts an item, which includes the indented
// lines below it; other indented lines are literal.
func (p *page) text(text string) {
	now := paragraph
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		next := now.after(line)
		switch {
		case line == "" && now == literal && next == literal:
			p.WriteString("\n")
			continue
		case line == "":
			p.WriteString(".PP\n")
			now = paragraph
			continue
		case next == item && strings.HasPrefix(line, bullet):
			p.WriteString(".IP \\(bu 2\n")
		case next != now:
			p.WriteString(now.end() + ".PP\n" + next.begin())
		}
		if now = next; now == item {
			line = strings.TrimPrefix(strings.TrimSpace(line), bullet)
		}
		p.WriteString(escape(line) + "\n")
	}
	p.WriteString(now.end())
}

// kind is the kind of a line of text.
type kind int

const (
	paragraph kind = iota
	item
	literal
)

const bullet = "- "

// after returns the kind of a line that follows one of this kind. An empty line continues literal text only.
func (k kind) after(line string) kind {
	indented := strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")
	switch {
	case strings.HasPrefix(line, bullet), indented && k == item:
		return item
	case indented, line == "" && k == literal:
		return literal
	}
	return paragraph
}

// begin and end return the requests that start and end literal text.
func (k kind) begin() string {
	if k == literal {
		return ".nf\n"
	}
	return ""
}

func (k kind) end() string {
	if k == literal {
		return ".fi\n"
	}
	return ""
}

// example writes literal lines.
func (p *page) example(text string) {
	fmt.Fprintf(p, ".nf\n%s\n.fi\n", escape(strings.Trim(text, "\n")))
}

// item writes a term in roff and its description.
func (p *page) item(term, text string) { fmt.Fprintf(p, ".TP\n%s\n%s\n", term, escape(text)) }

func bold(text string) string   { return `\fB` + escape(text) + `\fR` }
func italic(text string) string { return `\fI` + escape(text) + `\fR` }

// escape escapes roff's special characters. Hyphens remain hyphens when copied.
func escape(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...", "µ", `\(mc`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

func lowerFirst(s string) string {
	if s == "" || len(s) > 1 && s[1] >= 'A' && s[1] <= 'Z' { // GID
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}
