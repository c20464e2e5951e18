// SPDX-License-Identifier: Apache-2.0

// Command docs builds the documentation site from the repository's Markdown: make docs.
//
//	main.go      the command line, the steps
//	stage.go     hugo's input: the documents with their titles, and the files that they link to
//	links.go     checks that each link of the site leads to a file and a heading of the site
//	hugo.toml    hugo's configuration
//	layouts/     the page, and links from Markdown to Markdown
//
// The site is one folder, dist/docs. All links are relative, so it works from file:// and from any web server. Links
// to other hosts are not checked.
package main
