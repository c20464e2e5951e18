// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commandName returns the name of a command's page, such as roced-show-gid.
func commandName(cmd *cobra.Command) string {
	return strings.ReplaceAll(cmd.CommandPath(), " ", "-")
}

// commandPage returns the page of a command.
func commandPage(cmd *cobra.Command) string {
	p := newPage(commandName(cmd), "8", cmd.Short)
	p.section("SYNOPSIS")
	fmt.Fprintf(p, "%s\n", bold(cmd.UseLine()))
	p.section("DESCRIPTION")
	if p.text(cmd.Long); cmd.Long == "" {
		p.text(cmd.Short + ".")
	}
	if list := shown(cmd); len(list) > 0 {
		p.section("COMMANDS")
		p.commands(list)
	}
	p.section("OPTIONS")
	p.flags(cmd.NonInheritedFlags())
	p.flags(cmd.InheritedFlags())
	if cmd.Example != "" {
		p.section("EXAMPLES")
		p.example(cmd.Example)
	}
	p.section("SEE ALSO")
	p.seeAlso(cmd)
	return p.String()
}

// shown returns the subcommands with pages.
func shown(cmd *cobra.Command) (list []*cobra.Command) {
	for _, c := range cmd.Commands() {
		if !c.Hidden && c.Name() != "help" && c.Name() != "completion" {
			list = append(list, c)
		}
	}
	return list
}

func (p *page) commands(list []*cobra.Command) {
	for _, c := range list {
		p.item(bold(commandName(c))+"(8)", c.Short)
	}
}

func (p *page) flags(set *pflag.FlagSet) {
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		term := bold("--" + f.Name)
		if f.Shorthand != "" {
			term = bold("-"+f.Shorthand) + ", " + term
		}
		if value != "" {
			term += " " + italic(value)
		}
		if d := f.DefValue; d != "" && d != "false" && d != "[]" && d != "0s" && !strings.Contains(usage, "(default") {
			usage += " (default " + d + ")"
		}
		p.item(term, usage)
	})
}

// seeAlso lists the overview, and the parent command if there is one.
func (p *page) seeAlso(cmd *cobra.Command) {
	pages := []string{bold("roced") + "(8)"}
	if parent := cmd.Parent(); parent.HasParent() {
		pages = append(pages, bold(commandName(parent))+"(8)")
	}
	pages = append(pages, bold("roced.toml")+"(5)")
	p.WriteString(strings.Join(pages, ", ") + "\n")
}
