// Package container says what a container gets of roced: a folder with its socket, the C libraries, and the environment
// by which programs find both. As "roced cdi generate" says it.
package container
