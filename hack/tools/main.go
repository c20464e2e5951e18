// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/roced/roced/internal/tools"
)

func main() {
	packages := flag.Bool("packages", false, "print the Debian packages of the purposes without checking")
	flag.Parse()
	needs, err := tools.Needs(flag.Args()...)
	switch {
	case err != nil:
	case flag.NArg() == 0:
		fmt.Print(table())
	case *packages:
		fmt.Println(strings.Join(tools.Packages(needs...), " "))
	default:
		err = tools.Missing(needs...)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", strings.Join(flag.Args(), ", "), err)
		os.Exit(1)
	}
}

// table returns the list of CONTRIBUTING.md.
func table() string {
	var b strings.Builder
	for _, p := range tools.Purposes {
		fmt.Fprintf(&b, "    # %s\n", p.About)
		const width = 100
		line := "   "
		for word := range strings.FieldsSeq(tools.Install(p.Needs...)) {
			if len(line)+len(word) > width {
				b.WriteString(line + " \\\n")
				line = "       "
			}
			line += " " + word
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
