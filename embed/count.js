// count.js counts a visit when somebody sees the page, and puts the numbers into it. Pages load it
// with the line
//
//   <script src="https://count.example/count.js" data-app="blog" defer></script>
//
// docs/embed.md says what the page may say. What is served is this file without comments and
// indentation. Numbers go into the page as text, and nothing else does.
(() => {
	const d = document
	const line = d.currentScript || d.querySelector('script[data-app]') // a module has no current script
	if (!line || self.footfall?.visit) return // the page has the line twice, or runs its scripts again

	const {app, format, manual, events, status} = line.dataset
	const base = new URL('.', line.src)
	const asked = new WeakMap() // for which page the place of a list was filled
	let turn = 0 // of visits: the last one is where the reader is
	let said // the answer to that one; undefined: there is none (yet)
	let here // what is counted, or about to be
	let ignored
	let warned
	let untold // whether the app tells pages no numbers, once that is known: then they keep their own text
	let from = d.referrer.split('/', 3).join('/') // the origin that led here, until it is sent; paths say more than anybody asks for
	if (from == location.origin) from = ''

	const at = href => Object.assign(d.createElement('a'), {href}) // which may be relative
	const fragment = () => /^#[/!]/.test(location.hash) ? location.hash : '' // that is a route; others are none

	// The page may name the address by which it counts: on the line, or for search engines, who read
	// one of its own site. Both name the page that was loaded, and routers may leave them as they are.
	const where = () => location.pathname + fragment()
	const loaded = where()
	const bare = at => at.host.replace(/^www\./, '')
	const canonical = d.querySelector('link[rel=canonical]')
	const named = line.dataset.uri || canonical && !fragment() && bare(at(canonical.href)) == bare(location) && canonical.href
	const page = at(named)
	const tells = kind => manual == null && events?.split(/\s+/).includes(kind)
	let missing = tells('404') && (status || performance.getEntriesByType('navigation')[0]?.responseStatus) == 404 // until that is sent
	const marks = location.search.match(/utm_\w+=[^&]*/g) // by which the link here says what it was part of
	if (marks) page.search += '&' + marks.join('&')

	const file = /\.(7z|apk|avi|bz2|csv|deb|dmg|docx?|epub|exe|gz|iso|jar|key|midi?|mov|mp[34]|mpe?g|msi|od[pst]|pdf|pkg|pp[st]x?|rar|rpm|rtf|tar|tgz|txt|wav|wm[av]|xlsx?|xz|zip)$/i

	// The owner is told, once. Readers see the page as it is without numbers.
	const warn = why => {
		if (!warned) console.warn('footfall: ' + (warned = why))
	}

	const places = () => d.querySelectorAll('[data-footfall]')

	const ask = async (path, how) => {
		try {
			const answer = await fetch(base + path, {credentials: 'omit', ...how})
			const told = await answer.json()
			if (answer.ok) return told
			if (!ignored || places()[0]) warn(told.error)
			if (ignored && answer.status == 403) return {} // where a visit would have been answered so
		} catch {
			warn(`no answer from ${base}: is it up, does app ${app} list this site, does connect-src allow it?`)
		}
	}

	const query = what => '?' + new URLSearchParams({app, ...what})

	// put fills a place. One whose number is not there is hidden.
	const put = (place, numbers) => {
		let name
		const n = place.dataset.footfall.split('.').reduce((all, part) => all?.[name = part], numbers)
		const how = place.dataset.format || format
		place.hidden = !(n > 0 || n === 0 && name != 'rank')
		try {
			place.textContent = how ? n.toLocaleString(place.closest('[lang]')?.lang || [], how == 'short' ? {notation: 'compact', maximumFractionDigits: 1} : {}) : n
		} catch {
			place.textContent = n // in a language that the browser does not know, or not there
		}
	}

	// A sentence is hidden while a number of its own is.
	const show = () => {
		const sentence = '[data-footfall-sentence]'
		for (const s of d.querySelectorAll(sentence)) {
			s.hidden = [...s.querySelectorAll('[data-footfall]')].some(p => p.hidden && p.closest(sentence) == s)
		}
	}

	// once reports whether a place is new, or about something else than before.
	const once = (place, about) => asked.get(place) != about && asked.set(place, about)

	// happened fills the places of an event with its numbers.
	const happened = (event, told) => {
		for (const p of places()) if (p.dataset.footfallOf == event && told?.page) put(p, {event: told.page})
		show()
	}

	// top fills a list with links to the site's most visited pages.
	const top = async list => {
		const {footfallTop: n, footfallDays: days = 30, footfallShow: number} = list.dataset
		const told = await ask('top' + query({site: location.host, days, n}))
		for (const page of told?.pages || []) {
			const link = at('/' + '/' + page.uri) // two slashes together begin a comment in what is served
			link.textContent = page.title || page.shown.replace(/^[^/]*/, '')
			const item = d.createElement('li')
			item.append(link, ' ', page[number] ?? '')
			list.append(item)
		}
	}

	// fill fills all places that there are now; those of lists and events, once.
	const fill = async () => {
		if (untold ?? manual == null) return
		const list = []
		const events = new Set()
		for (const p of places()) {
			const {footfallFor: of, footfallOf: event} = p.dataset
			if (event) {
				if (!once(p, event)) continue
				put(p)
				events.add(event)
			} else if (of == null) put(p, said)
			else if (once(p, of)) {
				put(p)
				list.push([p, of])
			}
		}
		show()
		for (const event of events) ask('counts' + query({event})).then(told => happened(event, told))
		for (const l of d.querySelectorAll('[data-footfall-top]')) if (once(l, 1)) top(l)
		if (!list[0]) return
		const all = await counts(list.map(l => l[1]))
		list.forEach(([p, of], i) => asked.get(p) == of && put(p, all[i]))
		show()
	}

	// counts asks about pages, and counts nothing.
	const counts = async urls => {
		const all = []
		while (all.length < urls.length) {
			const uris = urls.slice(all.length, all.length + 1000).map(uri => at(uri).href)
			const told = await ask('counts', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify({app, uris})})
			all.push(...told?.counts || uris.map(() => ({})))
		}
		return all
	}

	// count counts, unless this browser is left out, and returns the numbers. Pages are told none of
	// events.
	const count = async what => {
		const {event} = what
		if (ignored && event != null) return {}
		const told = await ask((ignored ? 'counts' : 'visit') + query(what), {keepalive: true})
		if (event) happened(event, told)
		return told
	}

	// visit counts where the reader is, once they see it, or another page. Of several visits before
	// that one counts.
	const visit = async uri => {
		const mine = ++turn
		said = undefined
		await new Promise(done => setTimeout(done)) // a router may lead on at once
		while (d.prerendering || d.hidden) {
			await new Promise(done => ['prerenderingchange', 'visibilitychange'].map(e => d.addEventListener(e, done, {once: true})))
		}
		if (mine != turn) return
		let title // of the page that was loaded: routers may set that of a route at any time
		if (typeof uri != 'string') { // an event, where it is what listens
			uri = loaded == where() && named ? page.href : location.href
			if (mine < 2) title = d.title.slice(0, 200)
		}
		const referrer = !ignored && from && {referrer: from}
		uri = at(uri).href
		const answer = count({uri, ...(title && {title}), ...referrer})
		if (missing) count({event: '404' + loaded, ...referrer})
		missing = 0
		if (!ignored) from = '' // what follows comes from the page itself
		const told = await answer
		untold = told && !told.later ? !Object.keys(told)[0] : untold ?? false
		if (untold && places()[0]) warn(`app ${app} tells pages no numbers: see Settings, or footfall app set --public-counts`)
		if (mine == turn) { // otherwise the reader is elsewhere by now
			said = told
			fill()
			const words = ['today', 'here'].filter(word => d.querySelector(`[data-footfall*=".${word}"]`))
			if (words[0] && told?.site) ask('counts' + query({uri, with: words})).then(now => {
				for (const of of ['site', 'page']) Object.assign(told[of], {...now?.[of], ...told[of]})
				fill()
			})
			if (told && !told.later && !untold) d.dispatchEvent(new CustomEvent('footfall', {detail: told}))
		}
		return told
	}

	// clicked counts the event that is named where somebody clicks; where none is, that a link leads to
	// a file or to another host, for pages that want that told. Of addresses it tells no more than
	// that: queries may say who somebody is. The middle button opens links, and the second click of
	// two follows none.
	const clicked = e => {
		const link = e.composedPath().find(place => place.matches?.('a[href],area[href]'))
		if (e.button && !(e.button == 1 && link)) return
		let event = e.target.closest?.('[data-footfall-event]')?.dataset.footfallEvent
		const to = at(link?.getAttribute('href') || '') // which of a link in SVG is no property
		if (!event && link && /^http/.test(to.protocol) && e.detail < 2) {
			const away = bare(to) == bare(location) ? '' : '/' + bare(to)
			if (tells('download') && (link.hasAttribute('download') || file.test(to.pathname))) event = 'download' + away + to.pathname
			else if (tells('outbound') && away) event = 'outbound' + away
		}
		if (event) count({event})
	}

	// route counts if the reader has come to another page. Where an address is replaced, what its
	// query says is the state of the same page.
	const route = replaced => {
		const was = here
		const path = at => replaced ? at?.replace(/\?[^#]*/, '') : at
		here = location.pathname + location.search + fragment()
		if (path(was) != path(here)) visit()
	}

	// tell says something to those who see no console, as on a phone: in a line that goes again.
	const tell = textContent => {
		console.info(textContent)
		const p = Object.assign(d.createElement('b'), {textContent, role: 'status'})
		p.style = 'position:fixed;bottom:0;padding:1em;background:#fff;color:#000;z-index:9'
		d.documentElement.append(p)
		setTimeout(() => p.remove(), 8000)
	}

	// Whoever opens a page with #footfall-ignore is not counted on its site until they open one
	// with #footfall-count.
	const listen = () => {
		const wish = location.hash.match(/^#footfall-(ignore|count)$/)?.[1]
		try {
			if (wish == 'count') localStorage.removeItem('footfall')
			else if (wish) localStorage.footfall = wish
			ignored = localStorage.footfall
		} catch {
			ignored = wish == 'ignore' // the browser keeps nothing
		}
		if (wish) tell(`footfall: visits of this browser to this site ${ignored ? 'do not ' : ''}count`)
	}

	self.footfall = {visit, counts, fill, event: (event = '') => count({event})}
	listen()
	addEventListener('hashchange', listen)
	if (manual != null) return fill()
	for (const button of ['click', 'auxclick']) addEventListener(button, clicked, true) // before the page can end it
	for (const name of ['pushState', 'replaceState']) {
		const go = history[name]
		history[name] = function (...to) {
			go.apply(this, to)
			route(name[0] == 'r')
		}
	}
	addEventListener('popstate', () => route())
	addEventListener('hashchange', () => route())
	addEventListener('pageshow', e => e.persisted && visit())
	const drawn = () => {
		route()
		fill() // the places are others
	}
	for (const name of ['turbo:load', 'pjax:complete']) d.addEventListener(name, drawn)
	self.jQuery?.(d).on('pjax:end', drawn) // of jquery-pjax, which the browser does not hear
	route()
})()
