package manual

import (
	"fmt"
	"strings"
)

// page is a manual page in the making.
type page struct{ strings.Builder }

// newPage begins a page. It has no date, so that the same sources make the same page.
func newPage(name, section, short string) *page {
	p := &page{}
	fmt.Fprintf(p, ".TH %s %s \"\" roced \"roced manual\"\n", strings.ToUpper(escape(name)), section)
	p.section("NAME")
	fmt.Fprintf(p, "%s \\- %s\n", escape(name), escape(lowerFirst(short)))
	return p
}

func (p *page) section(title string) { fmt.Fprintf(p, ".SH %s\n", title) }

// text writes paragraphs. Indented lines stay as they are.
func (p *page) text(text string) {
	literal := false
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		indented := strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")
		switch {
		case line == "" && !literal:
			p.WriteString(".PP\n")
		case indented && !literal:
			p.WriteString(".PP\n.nf\n")
			literal = true
		case line != "" && !indented && literal:
			p.WriteString(".fi\n.PP\n")
			literal = false
		}
		if line != "" || literal {
			p.WriteString(escape(line) + "\n")
		}
	}
	if literal {
		p.WriteString(".fi\n")
	}
}

// example writes lines as they are.
func (p *page) example(text string) {
	fmt.Fprintf(p, ".nf\n%s\n.fi\n", escape(strings.Trim(text, "\n")))
}

// item writes a term, in roff, and what is said of it.
func (p *page) item(term, text string) { fmt.Fprintf(p, ".TP\n%s\n%s\n", term, escape(text)) }

func bold(text string) string   { return `\fB` + escape(text) + `\fR` }
func italic(text string) string { return `\fI` + escape(text) + `\fR` }

// escape keeps roff from taking characters for its own. A hyphen is to be one also when it is copied.
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
