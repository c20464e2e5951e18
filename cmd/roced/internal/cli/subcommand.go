package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// maxTypos is the number of letters in which a suggested command may differ from the given one, and half of its letters at most.
const maxTypos = 2

// addGroups makes each command that has subcommands show its help without an argument, and reject an unknown one.
// A command of cobra's own (completion) rejects arguments as the others do.
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

// isKnown rejects an argument that is no subcommand.
func isKnown(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return Unknown(cmd, args[0])
}

// Unknown is the error of a name that is no subcommand of cmd. It names those that the name resembles.
func Unknown(cmd *cobra.Command, name string) error {
	cmd.SuggestionsMinimumDistance = min(maxTypos, len(name)/2)
	hint := ""
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		hint = fmt.Sprintf("did you mean %s? ", strings.Join(near, " or "))
	}
	if !cmd.HasParent() {
		return Usage(fmt.Errorf("unknown command %q; %sroced help lists the commands", name, hint))
	}
	return Usage(fmt.Errorf("unknown command %q of %s; %s%[2]s --help lists its commands", name, cmd.CommandPath(), hint))
}

// newHelpCommand is "roced help COMMAND". Cobra's own ends with status 0 for an unknown command.
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
