// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// Pages returns all pages by file name: roced.8, roced.toml.5, and one per command.
func Pages(root *cobra.Command) map[string]string {
	pages := map[string]string{"roced.8": overviewPage(root), "roced.toml.5": tomlPage()}
	addPages(pages, root)
	return pages
}

func addPages(pages map[string]string, cmd *cobra.Command) {
	for _, c := range shown(cmd) {
		pages[commandName(c)+".8"] = commandPage(c)
		addPages(pages, c)
	}
}

// Write writes the pages to a directory, which it creates.
func Write(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range Pages(root) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
