// Package service manages sockets of containers in roced's service, as "roced socket" does.
package service
