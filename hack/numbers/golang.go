// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// writeConstants writes the part of package ib: types, constants, names.
func writeConstants(b *bytes.Buffer, kinds []kind) {
	fmt.Fprintf(b, "// %s\n\n// %s\n\npackage ib\n", licence, generated)
	for _, k := range kinds {
		b.WriteString("\n")
		comment(b, k.comment)
		fmt.Fprintf(b, "type %s %s\n\n", k.name, k.underlying)
		comment(b, k.listComment)
		b.WriteString("const (\n")
		for _, n := range k.numbers {
			fmt.Fprintf(b, "\t%s %s = %s%s\n", n.name, k.name, n.value, remark(n.comment))
		}
		b.WriteString(")\n")
		k.writeString(b)
	}
}

// writeString writes the type's String, and the names that it gives.
func (k *kind) writeString(b *bytes.Buffer) {
	if k.prints == "" {
		return
	}
	names, call := strings.ToLower(k.name[:1])+k.name[1:]+"Names", ""
	switch k.prints {
	case "named":
		fmt.Fprintf(b, "\nvar %s = []string{\n", names)
		for _, n := range k.numbers {
			fmt.Fprintf(b, "\t%s: %q,\n", n.name, n.text)
		}
		call = fmt.Sprintf("named(%s, n, %q)", names, k.printsKind)
	case "bits":
		fmt.Fprintf(b, "\nvar %s = []flag[%s]{\n", names, k.name)
		for _, n := range k.numbers {
			if n.text != "" {
				fmt.Fprintf(b, "\t{%s, %q},\n", n.name, n.text)
			}
		}
		call = fmt.Sprintf("listed(%s, n)", names)
	}
	fmt.Fprintf(b, "}\n\n// %s\nfunc (n %s) String() string { return %s }\n", k.printComment, k.name, call)
}

// aliasesIn returns the function that writes the part of a package of programs.
func aliasesIn(pkg string) func(*bytes.Buffer, []kind) {
	return func(b *bytes.Buffer, kinds []kind) {
		kinds = slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return k.in != pkg })
		writeAliases(b, pkg, kinds)
	}
}

func writeAliases(b *bytes.Buffer, pkg string, kinds []kind) {
	fmt.Fprintf(b, "// %s\n\n// %s\n\npackage %s\n\nimport \"github.com/roced/roced/verbs/ib\"\n\n", licence, generated, pkg)
	b.WriteString("// Types of package ib, whose values are below.\ntype (\n")
	for i, k := range kinds {
		if i > 0 {
			b.WriteString("\n")
		}
		comment(b, wrap(strings.Join(k.comment, " ")+" "+k.listed(pkg)))
		fmt.Fprintf(b, "\t%s = ib.%s\n", k.name, k.name)
	}
	b.WriteString(")\n")
	for _, k := range kinds {
		b.WriteString("\n")
		comment(b, k.listComment)
		b.WriteString("const (\n")
		for _, n := range k.numbers {
			fmt.Fprintf(b, "\t%s = ib.%s%s\n", n.name, n.name, remark(n.comment))
		}
		b.WriteString(")\n")
	}
}

// listed names the constants, since go doc does not list them below an alias.
func (k *kind) listed(pkg string) string {
	what, last := "Values", " or "
	if strings.Contains(k.numbers[len(k.numbers)-1].value, "<<") && k.prints != "named" {
		what, last = "Bits", " and "
	}
	var names []string
	for _, n := range k.numbers {
		names = append(names, n.name)
	}
	end := len(names) - 1
	switch {
	case end == 0:
		return fmt.Sprintf("%s: %s.", what, names[0])
	case end >= 8:
		return fmt.Sprintf("%s: %s to %s, which go doc %s.%s lists.", what, names[0], names[end], pkg, names[0])
	}
	return fmt.Sprintf("%s: %s%s%s.", what, strings.Join(names[:end], ", "), last, names[end])
}

func comment(b *bytes.Buffer, lines []string) {
	for _, line := range lines {
		fmt.Fprintf(b, "//%s\n", strings.TrimRight(" "+line, " "))
	}
}

// remark is a comment behind a constant.
func remark(text string) string {
	if text == "" {
		return ""
	}
	return " // " + text
}

// wrap breaks a text into lines of a comment.
func wrap(text string) (lines []string) {
	const width = 105
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}
