// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"html"
	"io/fs"
	"net/url"
	"os"
	"path"
	"regexp"
)

var (
	targets  = regexp.MustCompile(`\b(?:href|src)="([^"]*)"`)
	headings = regexp.MustCompile(`\bid="([^"]*)"`)
)

// page is a page of the site: its links, and the headings that links can name.
type page struct {
	links    []string
	headings map[string]bool
}

// checkLinks returns the numbers of pages and of links within the site, and an error that lists all broken links.
func checkLinks(folder string) (pages, links int, err error) {
	files := map[string]*page{} // nil if a file is no page
	site := os.DirFS(folder)
	err = fs.WalkDir(site, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files[name] = nil
		if path.Ext(name) == ".html" {
			text, err := fs.ReadFile(site, name)
			files[name] = read(string(text))
			return err
		}
		return nil
	})
	for name, p := range files {
		if p == nil {
			continue
		}
		pages++
		for _, link := range p.links {
			inside, broken := check(files, name, link)
			if inside {
				links++
			}
			err = errors.Join(err, broken)
		}
	}
	return pages, links, err
}

func read(text string) *page {
	p := &page{headings: map[string]bool{}}
	for _, match := range targets.FindAllStringSubmatch(text, -1) {
		p.links = append(p.links, html.UnescapeString(match[1]))
	}
	for _, match := range headings.FindAllStringSubmatch(text, -1) {
		p.headings[html.UnescapeString(match[1])] = true
	}
	return p
}

// check reports whether a link of a page stays inside of the site, and an error if its target does not exist.
func check(files map[string]*page, name, link string) (inside bool, err error) {
	to, err := url.Parse(link)
	switch {
	case err != nil:
		return true, fmt.Errorf("%s: %w", name, err)
	case to.Scheme != "" && to.Scheme != "file":
		return false, nil
	case to.Scheme != "" || to.Host != "" || path.IsAbs(to.Path):
		return true, fmt.Errorf("%s: link %s is not relative", name, link)
	}
	target := name
	if to.Path != "" {
		target = path.Join(path.Dir(name), to.Path)
	}
	p, exists := files[target]
	if !exists {
		return true, fmt.Errorf("%s: link %s: the site has no %s", name, link, target)
	}
	if to.Fragment != "" && (p == nil || !p.headings[to.Fragment]) {
		return true, fmt.Errorf("%s: link %s: %s has no heading %q", name, link, target, to.Fragment)
	}
	return true, nil
}
