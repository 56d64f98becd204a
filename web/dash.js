// Enhancements for browsers with scripts: keyboard shortcuts, a cursor on charts, sortable tables, automatic refresh, and
// buttons to copy texts. All information is available without them.

const say = JSON.parse(document.body.dataset.words) // texts in the language of the page
const all = (selector, within = document) => [...within.querySelectorAll(selector)]

// ---- state that a refresh keeps ----

const sorted = new Map() // sort order of each table, {column, down}, by the table's index
let at = null            // index of the chart's selected bar

// dress adds the elements that need scripts: buttons to sort and to copy, and the chart's cursor. A refresh keeps their state.
const dress = doc => {
  all('table.sortable', doc).forEach((table, number) => {
    const state = sorted.get(number)
    all('thead th', table).forEach((head, column) => {
      const button = doc.createElement('button')
      button.append(...head.childNodes)
      head.append(button)
      if (state?.column === column) head.setAttribute('aria-sort', state.down ? 'descending' : 'ascending')
    })
    if (state) sort(table.tBodies[0], state)
  })
  for (const text of all('pre[data-copy]', doc)) text.after(Object.assign(doc.createElement('button'), {className: 'copy', textContent: say.copy}))
  all('.plot-room', doc).forEach(room => {
    Object.assign(room, {tabIndex: 0, role: 'application', ariaLabel: say.chart})
    const bars = all('.bar', room)
    const bar = at === null ? null : bars[Math.min(at, bars.length - 1)]
    bar?.classList.add('at')
    doc.querySelector('.cursor').textContent = bar?.querySelector('title').textContent ?? ''
  })
}

// ---- tables ----

// valueOf returns the value to sort a cell by: a number, or a text.
const valueOf = cell => {
  if (cell.dataset.n) return +cell.dataset.n
  const text = cell.textContent.trim()
  return cell.classList.contains('n') ? parseFloat(text.replace(/\D(?=\d{3}(\D|$))/g, '')) || 0 : text
}

const sort = (body, {column, down}) => {
  const compared = (a, b) => typeof a === 'string' ? a.localeCompare(b) : a - b
  const rows = [...body.rows].map(row => ({row, value: valueOf(row.cells[column])}))
  rows.sort((a, b) => (down ? -1 : 1) * compared(a.value, b.value))
  body.append(...rows.map(r => r.row))
}

addEventListener('click', event => {
  const head = event.target.closest?.('table.sortable th')
  if (!head || !event.target.closest('button')) return
  const number = all('table.sortable').indexOf(head.closest('table'))
  const ways = {column: head.cellIndex, down: head.classList.contains('n')}
  if (head.hasAttribute('aria-sort')) ways.down = head.getAttribute('aria-sort') !== 'descending'
  sorted.set(number, ways)
  all('th', head.parentNode).forEach(other => other.removeAttribute('aria-sort'))
  head.setAttribute('aria-sort', ways.down ? 'descending' : 'ascending')
  sort(head.closest('table').tBodies[0], ways)
})

// ---- texts to copy ----

// execCommand is deprecated, but also works over plain http. If the browser refuses to copy, the text stays selected.
addEventListener('click', event => {
  const button = event.target.closest?.('button.copy')
  if (!button) return
  getSelection().selectAllChildren(button.previousElementSibling)
  if (document.execCommand('copy')) button.textContent = say.copied
})

// ---- the cursor on a chart ----

const point = bar => {
  all('.bar.at').forEach(other => other.classList.remove('at'))
  at = bar ? all('.bar', bar.parentNode).indexOf(bar) : null
  bar?.classList.add('at')
  document.querySelector('.cursor').textContent = bar?.querySelector('title').textContent ?? ''
}

addEventListener('pointerover', ({target}) => target.closest?.('.plot .bar') && point(target.closest('.plot .bar')))

addEventListener('keydown', event => {
  const room = event.target.closest?.('.plot-room')
  if (!room || event.ctrlKey || event.altKey || event.metaKey) return
  const bars = all('.bar', room), last = bars.length - 1
  const to = {ArrowRight: at === null ? 0 : at + 1, ArrowLeft: at === null ? last : at - 1, Home: 0, End: last}[event.key]
  if (event.key === 'Escape') point(null)
  const link = event.key === 'Enter' && bars[at]?.querySelector('a')
  if (link) location.href = link.href.baseVal
  if (to === undefined) return
  event.preventDefault()
  point(bars[Math.max(0, Math.min(to, last))])
})

// ---- keys ----

// Links and fields declare their keys in aria-keyshortcuts. Readers who use speech input or type with one hand can turn the
// keys off.
let off = false
try { off = localStorage.getItem('footfall-keys') === 'off' } catch { /* no storage */ }

const turn = on => {
  off = !on
  try { localStorage.setItem('footfall-keys', on ? 'on' : 'off') } catch { /* no storage */ }
}

addEventListener('keydown', event => {
  if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || off) return
  if (event.target.closest?.('input, select, textarea, dialog, .plot-room')) return
  if (event.key === '?') return help()
  if (event.shiftKey && event.key.startsWith('Arrow')) return // shift and an arrow select text
  const key = event.key.toLowerCase()
  const found = all('[aria-keyshortcuts]').find(e => e.getAttribute('aria-keyshortcuts').toLowerCase() === key)
  if (!found) return
  event.preventDefault()
  found.focus()
  if (found.matches('input')) found.select()
  else found.click()
})

const element = (name, ...children) => {
  const made = document.createElement(name)
  made.append(...children)
  return made
}

const help = () => {
  const list = element('dl')
  for (const e of all('[aria-keyshortcuts]')) {
    const key = e.getAttribute('aria-keyshortcuts').replace('ArrowLeft', '←').replace('ArrowRight', '→')
    const leads = e.title || e.labels?.[0].textContent || e.querySelector('.sr')?.textContent || e.textContent
    list.append(element('div', element('dt', element('kbd', key)), element('dd', leads.trim())))
  }
  list.append(element('div', element('dt', element('kbd', '?')), element('dd', say['this-list'])))
  const works = Object.assign(element('input'), {type: 'checkbox', checked: !off, onchange: () => turn(works.checked)})
  const close = element('button', say.close), title = Object.assign(element('h2', say.keyboard), {id: 'keys'})
  const dialog = element('dialog', title, list, element('label', works, ' ' + say['keys-work']), close)
  dialog.setAttribute('aria-labelledby', 'keys')
  close.onclick = dialog.onclose = () => dialog.remove() // an element of a closed dialog must not keep the focus
  document.body.append(dialog)
  dialog.showModal()
}

// ---- automatic refresh ----

// become makes a node of the page equal to the fresh node. It does not replace nodes that are equal already. So focus and open
// details stay, and nothing flickers.
const become = (node, fresh) => {
  if (node.nodeName !== fresh.nodeName) return node.replaceWith(fresh)
  if (node.nodeType !== Node.ELEMENT_NODE) {
    if (node.nodeValue !== fresh.nodeValue) node.nodeValue = fresh.nodeValue
    return
  }
  for (const {name} of [...node.attributes]) if (name !== 'open' && !fresh.hasAttribute(name)) node.removeAttribute(name)
  for (const {name, value} of fresh.attributes) if (node.getAttribute(name) !== value) node.setAttribute(name, value)
  const has = [...node.childNodes], wants = [...fresh.childNodes]
  wants.forEach((child, i) => has[i] ? become(has[i], child) : node.append(child))
  has.slice(wants.length).forEach(child => child.remove())
}

const usual = 5000, longest = 120000 // milliseconds
let pause = usual, shown = null, due = 0

// refresh requests the page again, which is cheap if the browser's copy is current. It waits longer if the service is slow.
const refresh = async () => {
  clearTimeout(due)
  const main = document.querySelector('main[data-live]')
  if (!main || document.hidden) return
  const began = performance.now()
  try {
    const answer = await fetch(location.href, {cache: 'no-cache'})
    if (answer.status === 403 || answer.status === 404) return // no longer permitted
    pause = Math.min(answer.ok ? Math.max(usual, 50 * (performance.now() - began)) : 2 * pause, longest)
    const version = answer.headers.get('ETag')
    if (answer.ok && version !== shown) {
      const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html')
      dress(fresh)
      become(main, fresh.querySelector('main'))
      shown = version
    }
  } catch {
    pause = Math.min(2 * pause, longest) // no response
  }
  due = setTimeout(refresh, pause)
}

addEventListener('visibilitychange', () => document.hidden || refresh())

dress(document)
document.querySelector('footer p')?.append(' ', Object.assign(element('button', say.keyboard), {className: 'plain', onclick: help}))
due = setTimeout(refresh, pause)

// The form for a new site preselects the browser's time zone.
const zone = document.querySelector('select[data-zone]'), here = Intl.DateTimeFormat().resolvedOptions().timeZone
if (zone && here) {
  if (![...zone.options].some(option => option.value === here)) zone.add(new Option(here))
  zone.value = here
}
