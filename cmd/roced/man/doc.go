// Package man is roced man: it shows a manual page (internal/manual) with man(1), or writes all of them, for
// packagers.
package man
