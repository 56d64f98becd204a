// count.js counts a visit when the page becomes visible, and inserts the numbers. Pages load it with
//
//   <script src="https://count.example/count.js" data-app="blog" defer></script>
//
// docs/embed.md lists the attributes. Comments and indentation are removed before it is served. It inserts numbers as text,
// and nothing else.
(() => {
	const d = document
	const line = d.currentScript || d.querySelector('script[data-app]') // a module has no current script
	if (!line || self.footfall?.visit) return // a second tag on the page, or scripts that run again

	const {app, format, manual, events, status} = line.dataset
	const base = new URL('.', line.src)
	const asked = new WeakMap() // the page or event that a place was filled for
	let turn = 0 // number of visits: only the last one is for the current page
	let said // its response; undefined: none (yet)
	let here // the page that is counted, or about to be
	let ignored
	let warned
	let untold // whether the app shows pages no numbers, once known: then places keep their own text
	let from = d.referrer.split('/', 3).join('/') // origin of the referrer, until it is sent; the path stays private
	if (from == location.origin) from = ''

	const at = href => Object.assign(d.createElement('a'), {href}) // may be relative
	const fragment = () => /^#[/!]/.test(location.hash) ? location.hash : '' // routes only, not other fragments

	// The page can set the address to count: with data-uri, or with a canonical link on its own site. Both are for the loaded
	// page, and routers may leave them unchanged.
	const where = () => location.pathname + fragment()
	const loaded = where()
	const bare = at => at.host.replace(/^www\./, '')
	const canonical = d.querySelector('link[rel=canonical]')
	const named = line.dataset.uri || canonical && !fragment() && bare(at(canonical.href)) == bare(location) && canonical.href
	const page = at(named)
	const tells = kind => manual == null && events?.split(/\s+/).includes(kind)
	let missing = tells('404') && (status || performance.getEntriesByType('navigation')[0]?.responseStatus) == 404 // until it is sent
	const marks = location.search.match(/utm_\w+=[^&]*/g) // campaign parameters of the link to this page
	if (marks) page.search += '&' + marks.join('&')

	const file = /\.(7z|apk|avi|bz2|csv|deb|dmg|docx?|epub|exe|gz|iso|jar|key|midi?|mov|mp[34]|mpe?g|msi|od[pst]|pdf|pkg|pp[st]x?|rar|rpm|rtf|tar|tgz|txt|wav|wm[av]|xlsx?|xz|zip)$/i

	// Warns the site's owner once, in the console. Readers see the page without numbers.
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
			if (ignored && answer.status == 403) return {} // a visit would have got the same response
		} catch {
			warn(`no answer from ${base}: is it up, does app ${app} list this site, does connect-src allow it?`)
		}
	}

	const query = what => '?' + new URLSearchParams({app, ...what})

	// put fills a place, or hides it if it has no number.
	const put = (place, numbers) => {
		let name
		const n = place.dataset.footfall.split('.').reduce((all, part) => all?.[name = part], numbers)
		const how = place.dataset.format || format
		place.hidden = !(n > 0 || n === 0 && name != 'rank')
		try {
			place.textContent = how ? n.toLocaleString(place.closest('[lang]')?.lang || [], how == 'short' ? {notation: 'compact', maximumFractionDigits: 1} : {}) : n
		} catch {
			place.textContent = n // unknown language, or no number
		}
	}

	// Hides each sentence that contains a hidden number.
	const show = () => {
		const sentence = '[data-footfall-sentence]'
		for (const s of d.querySelectorAll(sentence)) {
			s.hidden = [...s.querySelectorAll('[data-footfall]')].some(p => p.hidden && p.closest(sentence) == s)
		}
	}

	// once reports whether a place is new, or for something else than before.
	const once = (place, about) => asked.get(place) != about && asked.set(place, about)

	// happened fills the places for an event with its numbers.
	const happened = (event, told) => {
		for (const p of places()) if (p.dataset.footfallOf == event && told?.page) put(p, {event: told.page})
		show()
	}

	// top fills a list with links to the site's most visited pages.
	const top = async list => {
		const {footfallTop: n, footfallDays: days = 30, footfallShow: number} = list.dataset
		const told = await ask('top' + query({site: location.host, days, n}))
		for (const page of told?.pages || []) {
			const link = at('/' + '/' + page.uri) // two adjacent slashes would be removed as a comment
			link.textContent = page.title || page.shown.replace(/^[^/]*/, '')
			const item = d.createElement('li')
			item.append(link, ' ', page[number] ?? '')
			list.append(item)
		}
	}

	// fill fills all current places; those for lists and events only once.
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

	// counts requests the numbers of pages without counting a visit.
	const counts = async urls => {
		const all = []
		while (all.length < urls.length) {
			const uris = urls.slice(all.length, all.length + 1000).map(uri => at(uri).href)
			const told = await ask('counts', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify({app, uris})})
			all.push(...told?.counts || uris.map(() => ({})))
		}
		return all
	}

	// count counts, unless this browser opted out, and returns the numbers, if any. An event's numbers go to its places.
	const count = async what => {
		const {event} = what
		if (ignored && event != null) return {}
		const told = await ask((ignored ? 'counts' : 'visit') + query(what), {keepalive: true})
		if (event) happened(event, told)
		return told
	}

	// visit counts a visit to the current page when it becomes visible, or to another page. Of several pending visits only the
	// last one counts.
	const visit = async uri => {
		const mine = ++turn
		said = undefined
		await new Promise(done => setTimeout(done)) // a router may redirect at once
		while (d.prerendering || d.hidden) {
			await new Promise(done => ['prerenderingchange', 'visibilitychange'].map(e => d.addEventListener(e, done, {once: true})))
		}
		if (mine != turn) return
		let title // of the loaded page only: routers may set a route's title at any time
		if (typeof uri != 'string') { // called as an event listener
			uri = loaded == where() && named ? page.href : location.href
			if (mine < 2) title = d.title.slice(0, 200)
		}
		const referrer = !ignored && from && {referrer: from}
		uri = at(uri).href
		const answer = count({uri, ...(title && {title}), ...referrer})
		if (missing) count({event: '404' + loaded, ...referrer})
		missing = 0
		if (!ignored) from = '' // later visits come from the page itself
		const told = await answer
		untold = told && !told.later ? !Object.keys(told)[0] : untold ?? false
		if (untold && places()[0]) warn(`app ${app} tells pages no numbers: see Settings, or footfall app set --public-counts`)
		if (mine == turn) { // otherwise the reader has left the page
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

	// clicked counts the clicked element's named event. Otherwise, if the page wants that, it counts links to files or other
	// hosts, without the query, which may identify a person. The middle button opens links, too. The second click of a double
	// click is ignored.
	const clicked = e => {
		const link = e.composedPath().find(place => place.matches?.('a[href],area[href]'))
		if (e.button && !(e.button == 1 && link)) return
		let event = e.target.closest?.('[data-footfall-event]')?.dataset.footfallEvent
		const to = at(link?.getAttribute('href') || '') // links in SVG have no such property
		if (!event && link && /^http/.test(to.protocol) && e.detail < 2) {
			const away = bare(to) == bare(location) ? '' : '/' + bare(to)
			if (tells('download') && (link.hasAttribute('download') || file.test(to.pathname))) event = 'download' + away + to.pathname
			else if (tells('outbound') && away) event = 'outbound' + away
		}
		if (event) count({event})
	}

	// route counts a visit if the reader is on another page. If an address is replaced with another query, it is still the same
	// page.
	const route = replaced => {
		const was = here
		const path = at => replaced ? at?.replace(/\?[^#]*/, '') : at
		here = location.pathname + location.search + fragment()
		if (path(was) != path(here)) visit()
	}

	// tell shows a message on the page for some seconds, for readers without a console, as on a phone.
	const tell = textContent => {
		console.info(textContent)
		const p = Object.assign(d.createElement('b'), {textContent, role: 'status'})
		p.style = 'position:fixed;bottom:0;padding:1em;background:#fff;color:#000;z-index:9'
		d.documentElement.append(p)
		setTimeout(() => p.remove(), 8000)
	}

	// A browser that opens a page with #footfall-ignore is not counted on that site, until it opens a page with #footfall-count.
	const listen = () => {
		const wish = location.hash.match(/^#footfall-(ignore|count)$/)?.[1]
		try {
			if (wish == 'count') localStorage.removeItem('footfall')
			else if (wish) localStorage.footfall = wish
			ignored = localStorage.footfall
		} catch {
			ignored = wish == 'ignore' // without storage
		}
		if (wish) tell(`footfall: visits of this browser to this site ${ignored ? 'do not ' : ''}count`)
	}

	self.footfall = {visit, counts, fill, event: (event = '') => count({event})}
	listen()
	addEventListener('hashchange', listen)
	if (manual != null) return fill()
	for (const button of ['click', 'auxclick']) addEventListener(button, clicked, true) // in the capture phase, before the page can stop the event
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
		fill() // the places have changed
	}
	for (const name of ['turbo:load', 'pjax:complete']) d.addEventListener(name, drawn)
	self.jQuery?.(d).on('pjax:end', drawn) // from jquery-pjax; not a DOM event
	route()
})()
