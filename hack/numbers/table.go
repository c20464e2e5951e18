// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// kind is a type, with its numbers.
type kind struct {
	name, underlying string
	in               string // the package that has aliases of it; empty: none
	comment          []string
	listComment      []string

	enum, prefix, theirs string // in C; enum is empty if it has none there

	prints       string // "named", "bits", or empty: it has no String
	printsKind   string // of named: what stands before a number without name
	printComment string

	numbers []number
}

// number is a constant.
type number struct {
	name, value string
	c           string // without the prefix; empty: C has none
	text        string // text form; empty: printed as a number
	renamed     bool   // theirs is not their prefix and c
	theirs      string // then: empty if not all versions have it
	comment     string
}

var numberLine = regexp.MustCompile(`^(\w+)\s\s+(.+?)\s\s+(\w+|-)\s\s+("[^"]*"|-)(?:\s\s+= (\w+|-))?(?:\s\s*// (.*))?$`)

// parse reads the table.
func parse(text string) (kinds []kind, err error) {
	for i, line := range strings.Split(text, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if word, rest, _ := strings.Cut(line, " "); word == "type" {
			fields := strings.Fields(rest)
			k := kind{name: fields[0], underlying: fields[1]}
			if len(fields) > 2 {
				k.in = fields[2]
			}
			kinds = append(kinds, k)
			continue
		}
		if len(kinds) == 0 {
			return nil, fmt.Errorf("line %d: no type yet", i+1)
		}
		if err := kinds[len(kinds)-1].take(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return kinds, nil
}

// take reads a line of the block of a type.
func (k *kind) take(line string) (err error) {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "|":
		k.comment = append(k.comment, rest)
	case ">":
		k.listComment = append(k.listComment, rest)
	case "enum":
		_, err = fmt.Sscan(rest, &k.enum, &k.prefix, &k.theirs)
	case "prints":
		how, comment, _ := strings.Cut(rest, ": ")
		k.printComment = comment
		if k.prints, how, _ = strings.Cut(how, " "); k.prints == "named" {
			k.printsKind, err = strconv.Unquote(how)
		}
	default:
		m := numberLine.FindStringSubmatch(line)
		if m == nil {
			return fmt.Errorf("not a number: %q", line)
		}
		n := number{name: m[1], value: m[2], c: given(m[3]), renamed: m[5] != "", theirs: given(m[5]), comment: m[6]}
		if given(m[4]) != "" {
			n.text, err = strconv.Unquote(m[4])
		}
		k.numbers = append(k.numbers, n)
	}
	return err
}

// given is a field; empty for "-".
func given(field string) string { return strings.TrimPrefix(field, "-") }

// c returns the name in C, and libibverbs' name, or "".
func (k *kind) c(n *number) (ours, theirs string) {
	if k.enum == "" || n.c == "" {
		return "", ""
	}
	switch {
	case n.renamed:
		theirs = n.theirs
	case k.theirs != "-":
		theirs = k.theirs + n.c
	}
	return k.prefix + n.c, theirs
}
