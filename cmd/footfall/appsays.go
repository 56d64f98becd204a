package main

import "footfall/counter/app"

// tellsBrowsers is what follows from the first app that tells browsers apart.
const tellsBrowsers = "Instances of 0.1.0, which would take browsers behind one address for one visitor, count nothing in this database " +
	"from now on: they answer 503."

// keeps says in a sentence what an app keeps of its visitors.
var keeps = map[string]string{
	"address": "It keeps the addresses of its visitors as they are.",
	"id":      "It keeps no ids of its visitors, but hashes of them, keyed with the secret.",
	"hashed":  "It keeps no addresses, but hashes of them, keyed with the secret.",
	app.ByBrowser: "It keeps no addresses, but hashes of them and of what browser and system are called, keyed with the secret. " +
		tellsBrowsers,
	"daily": "It keeps no addresses, but hashes of them, keyed with the secret and with a key that changes each day.",
}

// tells says in a sentence which numbers an app tells without a key.
var tells = map[string]string{
	app.PublicOff:     "It tells its numbers to nobody without a key; answers would show them in its pages, and read in badges, too.",
	app.PublicAnswers: "It tells pages their numbers, and anybody who asks; off would tell them to nobody without a key.",
	app.PublicRead:    "It tells anybody the numbers of its pages, in badges, too; off would tell them to nobody without a key.",
	"count":           "It tells anybody the numbers of its pages, and badges count; off would tell them to nobody without a key.",
}
