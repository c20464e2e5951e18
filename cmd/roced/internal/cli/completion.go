// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"net"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Choices is a flag value with a known set of values, for shell completion.
type Choices interface {
	pflag.Value
	Choices() []string
}

// addCompletions adds completion of flag values to a command and its subcommands.
func addCompletions(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		addCompletions(c)
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if value, is := f.Value.(Choices); is {
			complete := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
				return value.Choices(), cobra.ShellCompDirectiveNoFileComp
			}
			_ = cmd.RegisterFlagCompletionFunc(f.Name, complete) // an error means that it is registered already
		}
	})
}

// completeCommand completes arguments that are names of commands.
func completeCommand(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	if of, rest, err := cmd.Root().Traverse(args); err == nil && len(rest) == 0 {
		for _, c := range of.Commands() {
			if c.IsAvailableCommand() {
				names = append(names, c.Name()+"\t"+c.Short)
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// Choice is a flag value from a list.
type Choice struct {
	List  []string
	Value *string
}

// Set implements pflag.Value. The command checks the value, because valid values may depend on other flags.
func (c *Choice) Set(text string) error {
	*c.Value = text
	return nil
}

// String implements pflag.Value.
func (c *Choice) String() string {
	if c.Value == nil {
		return ""
	}
	return *c.Value
}

// Type implements pflag.Value.
func (c *Choice) Type() string { return "string" }

// Choices implements Choices.
func (c *Choice) Choices() []string { return c.List }

// Interface is a flag value that names one or several network interfaces of the host.
type Interface struct {
	One  *string
	Many *[]string // each flag adds one; nil if the flag sets One
}

// Set implements pflag.Value.
func (i *Interface) Set(text string) error {
	if i.Many != nil {
		*i.Many = append(*i.Many, text)
	} else {
		*i.One = text
	}
	return nil
}

// String implements pflag.Value.
func (i *Interface) String() string {
	if i.One == nil {
		return ""
	}
	return *i.One
}

// Type implements pflag.Value.
func (i *Interface) Type() string { return "interface" }

// Choices implements Choices.
func (i *Interface) Choices() (names []string) {
	list, _ := net.Interfaces()
	for _, one := range list {
		names = append(names, one.Name)
	}
	return names
}
