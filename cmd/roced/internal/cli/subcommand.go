// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// maxTypos is the maximum number of letters in which a suggested command differs from the given one. Short names may
// differ in half of their letters.
const maxTypos = 2

// addGroups makes each command with subcommands show its help without an argument and reject unknown
// subcommands. Cobra's own command (completion) rejects arguments as well.
func addGroups(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		addGroups(c)
	}
	if cmd.Name() == "man" {
		cmd.ValidArgsFunction = completeCommand
	}
	switch {
	case cmd.HasAvailableSubCommands():
		cmd.Args = isKnown
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	case cmd.Parent() != nil && cmd.Parent().Name() == "completion":
		cmd.Args = NoArguments
	}
}

// isKnown rejects an unknown subcommand.
func isKnown(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return Unknown(cmd, args[0])
}

// Unknown returns the error of an unknown subcommand of cmd, with similar names.
func Unknown(cmd *cobra.Command, name string) error {
	cmd.SuggestionsMinimumDistance = min(maxTypos, len(name)/2)
	hint := ""
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		hint = fmt.Sprintf("did you mean %s? ", strings.Join(near, " or "))
	}
	if !cmd.HasParent() {
		return Usage(fmt.Errorf("unknown command %q; %ssee roced help", name, hint))
	}
	return Usage(fmt.Errorf("unknown command %q of %s; %ssee %[2]s --help", name, cmd.CommandPath(), hint))
}

// newHelpCommand returns "roced help COMMAND". That of cobra exits with 0 for an unknown command.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "help [COMMAND]",
		Short:             "Show the help of a command",
		ValidArgsFunction: completeCommand,
		RunE: func(cmd *cobra.Command, args []string) error {
			of, rest, err := cmd.Root().Traverse(args)
			switch {
			case err != nil:
				return Usage(err)
			case len(rest) > 0 && of.HasAvailableSubCommands():
				return Unknown(of, rest[0])
			case len(rest) > 0:
				return Usage(errors.New(of.CommandPath() + " has no subcommands; see " + of.CommandPath() + " --help"))
			}
			of.InitDefaultHelpFlag()
			return of.Help()
		},
	}
}
