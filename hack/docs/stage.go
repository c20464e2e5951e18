// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// linked are the targets of links to other files, without their headings.
var linked = regexp.MustCompile(`\]\(([^)#:\s]+)[^)]*\)`)

// fill writes hugo's input: its configuration and layouts, documents into content/, files that they link to into static/.
func fill(stage string) error {
	if err := os.CopyFS(stage, os.DirFS("hack/docs")); err != nil {
		return err
	}
	var names []string
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		names = append(names, found...)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := document(stage, name, string(text)); err != nil {
			return err
		}
		for _, link := range linked.FindAllStringSubmatch(string(text), -1) {
			target := path.Join(path.Dir(name), link[1])
			if info, err := os.Stat(target); err != nil || info.IsDir() || path.Ext(target) == ".md" {
				continue // checkLinks reports what does not exist
			}
			content, err := os.ReadFile(target)
			if err != nil {
				return err
			}
			if path.Ext(target) == ".go" {
				target += ".txt" // no package, for the go command; render-link.html has this name too
			}
			if err := write(filepath.Join(stage, "static", target), content); err != nil {
				return err
			}
		}
	}
	return nil
}

// document writes a document with its front matter: the title, the place in the site, and the way to the site's root.
func document(stage, name, text string) error {
	heading, _, _ := strings.Cut(text, "\n")
	title, is := strings.CutPrefix(heading, "# ")
	if !is {
		return fmt.Errorf("%s: the first line is not a heading", name)
	}
	page := strings.TrimSuffix(name, ".md")
	if path.Base(page) == "README" {
		page = path.Join(path.Dir(page), "index")
	}
	root := strings.Repeat("../", strings.Count(name, "/"))
	front, err := json.MarshalIndent(map[string]string{"title": title, "url": "/" + page + ".html", "root": root}, "", "  ")
	if err != nil {
		return err
	}
	file := strings.ReplaceAll(name, "/", "-") // hugo takes index.md for a section
	return write(filepath.Join(stage, "content", file), []byte(string(front)+"\n"+text))
}

func write(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, content, 0o644)
}
