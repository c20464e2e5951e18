// SPDX-License-Identifier: Apache-2.0

package manual

import (
	_ "embed"
	"strings"

	"github.com/spf13/cobra"
)

//go:embed overview.man
var overview string

// overviewPage returns roced(8): the commands, their common options, and the text of overview.man.
func overviewPage(root *cobra.Command) string {
	p := newPage("roced", "8", root.Short)
	p.section("SYNOPSIS")
	p.WriteString(bold("roced") + " " + italic("COMMAND") + " [" + italic("OPTION") + " ...]\n")
	description, rest, _ := strings.Cut(overview, ".\\\" commands\n")
	p.WriteString(description)
	p.section("COMMANDS")
	p.commands(shown(root))
	p.section("OPTIONS")
	p.flags(root.PersistentFlags())
	p.WriteString(rest)
	return p.String()
}
