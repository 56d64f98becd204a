package main

import (
	"cmp"
	"os"
	"strings"
	"time"
)

// utc is the zone of a machine that says no other.
const utc = "UTC"

// localtime leads to the file of the machine's time zone, where it has one.
const localtime = "/etc/localtime"

// machineZone names the time zone of this machine: that of TZ, or the one to whose file localtime
// leads. It is UTC where neither names one that the tables can have, as in a container.
func machineZone(localtime string) string {
	zone, set := os.LookupEnv("TZ")
	if !set {
		zone, _ = os.Readlink(localtime) // no link names nothing
	}
	zone = strings.TrimPrefix(zone, ":")
	if _, name, inFolder := strings.Cut(zone, "zoneinfo/"); inFolder {
		zone = name
	}
	zone = strings.TrimPrefix(zone, "posix/")
	if _, err := time.LoadLocation(zone); err != nil || zone == "Local" || zone == "Etc/"+utc {
		return utc
	}
	return cmp.Or(zone, utc)
}
