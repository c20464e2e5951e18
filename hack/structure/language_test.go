// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"go/scanner"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// wrongWords are expressions that are never right in this project's texts, and their replacements.
var wrongWords = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)\bby (itself|themselves)\b`), "by default, or alone"},
	{regexp.MustCompile(`(?i)\bnobody (else|can|may|must|will|would|had|was|were|did|\w+s)\b|\bno-?one's\b`), "no process, no user"},
	{regexp.MustCompile(`(?i)\b(heeds?|bereft|in vain|whereof|hereof|thereof)\b`), "the plain word"},
	{regexp.MustCompile(`(?i)\bmistakes?\b`), "error, bug, invalid"},
	{regexp.MustCompile(`(?i)\b(an?|any|no) rights?\b`), "privilege"},
	{regexp.MustCompile(`(?i)\b(but for|all but)\b`), "except"},
	{regexp.MustCompile(`(?i)\b(as they must be|one may not|one has to)\b`), "another sentence"},
	{regexp.MustCompile(`(?i)\bnetworks? in memory\b`), "in-memory network"},
	{regexp.MustCompile(`(?i)\bin the place of\b`), "instead of"},
}

// standard are the places where such an expression is correct English.
var standard = regexp.MustCompile(`(?i)\buser nobody\b|^// nobody is the u|\b(an?|any|no) right (hand|side|shift|now)\b`)

// literalsOfC are comments and string literals of C.
var literalsOfC = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"`)

// textsOfGo returns the comments and string literals of a Go file, by line.
func textsOfGo(source []byte) map[int][]string {
	files := token.NewFileSet()
	in := files.AddFile("", files.Base(), len(source))
	var s scanner.Scanner
	s.Init(in, source, nil, scanner.ScanComments)
	texts := map[int][]string{}
	for {
		at, kind, text := s.Scan()
		switch kind {
		case token.EOF:
			return texts
		case token.COMMENT, token.STRING:
			line := in.Line(at)
			texts[line] = append(texts[line], text)
		}
	}
}

func textsOfC(source []byte) map[int][]string {
	texts := map[int][]string{}
	for _, at := range literalsOfC.FindAllIndex(source, -1) {
		line := 1 + strings.Count(string(source[:at[0]]), "\n")
		texts[line] = append(texts[line], string(source[at[0]:at[1]]))
	}
	return texts
}

func textsOfDocument(source []byte) map[int][]string {
	texts := map[int][]string{}
	for i, line := range strings.Split(string(source), "\n") {
		texts[i+1] = []string{line}
	}
	return texts
}

// TestWords refuses wrong expressions in comments, in string literals and in documents.
func TestWords(t *testing.T) {
	kinds := map[string]func([]byte) map[int][]string{".go": textsOfGo, ".c": textsOfC, ".h": textsOfC, ".md": textsOfDocument, ".sh": textsOfDocument}
	read := 0
	eachFile(t, func(name, text string) {
		texts := kinds[filepath.Ext(name)]
		if texts == nil || strings.Contains(name, "testdata/") || strings.HasSuffix(name, "language_test.go") || strings.HasSuffix(name, "_bpfel.go") {
			return
		}
		read++
		for line, list := range texts([]byte(text)) {
			for _, text := range list {
				checkWords(t, name, line, text)
			}
		}
	})
	if read < 100 {
		t.Errorf("read %d files", read)
	}
}

func checkWords(t *testing.T, name string, line int, text string) {
	rest := standard.ReplaceAllString(text, "")
	for _, wrong := range wrongWords {
		if at := wrong.pattern.FindStringIndex(rest); at != nil {
			t.Errorf("%s:%d: %q; write %s", name, line+strings.Count(rest[:at[0]], "\n"), rest[at[0]:at[1]], wrong.instead)
		}
	}
}

func TestWordsAreFound(t *testing.T) {
	source := "package p\n\n// f is by itself.\nvar f = \"a mistake\" // as user nobody\n"
	found := 0
	for _, list := range textsOfGo([]byte(source)) {
		for _, text := range list {
			for _, wrong := range wrongWords {
				if wrong.pattern.MatchString(standard.ReplaceAllString(text, "")) {
					found++
				}
			}
		}
	}
	if c := textsOfC([]byte("int a; /* x\n y */ char *s = \"b\"; // c\n")); found != 2 || len(c[1]) != 1 || len(c[2]) != 2 {
		t.Errorf("found %d expressions, want 2; texts of C: %v", found, c)
	}
}
