// Package cdi is roced cdi: what container engines need to pass a socket of the service and the C libraries on.
package cdi
