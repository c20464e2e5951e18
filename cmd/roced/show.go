package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/spf13/cobra"
)

func newShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show what a device has",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("roced show knows no %q; roced show --help lists what it shows", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newShowGIDCommand())
	return cmd
}

// showGIDOptions is the command line of show gid.
type showGIDOptions struct {
	interfaceFlags
	json bool
}

const showGIDHelp = `Lists the GID table that a command has which starts now: the addresses of the
interface, each with the line that -g (--gid-index) takes. Line 0 is the default, a
routable IPv4 address; where there is none, it repeats the best other line. Programs
that run keep an address's line as long as the address stays.

Nothing is opened, and no privilege is needed, but for --netns.`

func newShowGIDCommand() *cobra.Command {
	o := &showGIDOptions{}
	cmd := &cobra.Command{
		Use:     "gid -d DEVICE",
		Short:   "List the GIDs of an interface: what --gid-index chooses from",
		Long:    showGIDHelp,
		Example: "  roced show gid -d eth0\n  roced show gid -d eth0 -j",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return usageError{err}
			}
			return o.run(cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	o.interfaceFlags.add(f)
	f.BoolVarP(&o.json, "json", "j", false, "JSON")
	return cmd
}

// gidLine is a line of the table, as it is shown.
type gidLine struct {
	Index     int    `json:"index"`
	GID       string `json:"gid"`
	Type      string `json:"type"`
	Version   string `json:"version"` // of IP
	Interface string `json:"netdev"`
	Default   bool   `json:"default"`
}

// gidType is that of all GIDs of an Ethernet interface here, in the kernel's words.
const gidType = "RoCE v2"

func newGIDLine(e verbs.GIDEntry) gidLine {
	version := "IPv6"
	if e.GID.IsIPv4() {
		version = "IPv4"
	}
	return gidLine{e.Index, e.GID.String(), gidType, version, e.Interface, e.Index == 0}
}

func (o *showGIDOptions) run(out io.Writer) error {
	if err := o.enter(); err != nil {
		return err
	}
	var options []hca.Option
	if o.namespace != "" {
		options = append(options, hca.InNamespace(o.path()))
	}
	entries, err := hca.ListGIDs(o.device, options...)
	if err != nil {
		return err
	}
	lines := make([]gidLine, len(entries))
	for i, e := range entries {
		lines[i] = newGIDLine(e)
	}
	if o.json {
		return json.NewEncoder(out).Encode(lines)
	}
	if len(lines) == 0 {
		return noAddress(o.device)
	}
	return writeGIDs(out, lines)
}

func writeGIDs(out io.Writer, lines []gidLine) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "INDEX\tGID\tTYPE\tIP\tNETDEV\tDEFAULT")
	for _, l := range lines {
		mark := ""
		if l.Default {
			mark = "default"
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\n", l.Index, l.GID, l.Type, l.Version, l.Interface, mark)
	}
	return w.Flush()
}

// noAddress is an interface whose GID table is empty.
func noAddress(name string) error {
	return fmt.Errorf("%w: %s has no IP address; ip addr add ADDRESS/LENGTH dev %[2]s", verbs.ErrNoGID, name)
}
