// Package man is roced man, which packagers use: it writes the manual pages (internal/manual). It is not
// listed.
package man
