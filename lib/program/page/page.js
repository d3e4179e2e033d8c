
'use strict';
// Shows what the data blocks of this page hold. All of it is text that models and strangers may have written: it reaches
// the page as text nodes alone, never as HTML, and the page's policy allows no other script.
(() => {
  // After so many milliseconds of work the browser draws and reacts.
  const SLICE = 12;
  const ROWS = 100;
  const PRINTED = 500;
  const LINK = /\[\[(id__\w{6})\]\]/;

  const byName = (id) => document.getElementById(id);
  const [tabs, rows, end, article, panel, search, count] =
    ['tabs', 'rows', 'end', 'item', 'panel', 'search', 'count'].map(byName);

  const fill = (made, attributes, children) => {
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    for (const child of children.flat()) made.append(child);
    return made;
  };
  /** Children may come in lists: a long list is too much for the arguments of one call. */
  const make = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
  const draw = (name, attributes, ...children) => fill(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, children);
  const pause = () => new Promise((resume) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = resume;
    port2.postMessage(0);
  });
  /** Does something with each, in slices. False: it was given up because something newer was asked. */
  async function each(list, act, isWanted = () => true) {
    let start = performance.now();
    for (const one of list) {
      act(one);
      if (performance.now() - start < SLICE) continue;
      await pause();
      if (!isWanted()) return false;
      start = performance.now();
    }
    return true;
  }
  const number = (value) => value.toLocaleString('en', { maximumFractionDigits: 4 });
  const parse = (block) => {
    const value = JSON.parse(block.textContent);
    block.remove();
    return value;
  };

  const page = parse(byName('page'));
  const items = [];
  const byId = new Map();
  const values = page.filters.map(() => new Map());
  const choices = page.filters.map(([name]) => {
    const select = make('select');
    byName('filters').append(make('label', {}, `${name} `, select));
    select.addEventListener('input', update);
    return select;
  });

  function add(item) {
    item.head = `${item.title}\n${item.values.flat().join('\n')}`.toLowerCase();
    item.about = item.values.flat().join(' \u00b7 ');
    item.whole = [item.id, item.text, ...item.facts.map((fact) => fact[1]), ...item.events.flat()].join('\n').toLowerCase();
    items.push(item);
    byId.set(item.id, item);
    for (const alias of item.aliases) if (!byId.has(alias)) byId.set(alias, item);
    item.values.forEach((its, at) => its.forEach((value) => values[at].set(value, (values[at].get(value) ?? 0) + 1)));
  }

  function fillChoices() {
    choices.forEach((select, at) => {
      const sorted = [...values[at]].sort(([a], [b]) => (a < b ? -1 : 1));
      select.replaceChildren(make('option', { value: '' }, 'all'));
      for (const [value, many] of sorted) select.append(make('option', { value }, `${value} (${number(many)})`));
      if (values[at].has(page.filters[at][1])) select.value = page.filters[at][1];
    });
  }

  // The list.

  let turn = 0;
  let found = [];
  let drawn = 0;
  let isRead = false;

  /** Finds again. Those with all words in title or tags come first. */
  async function update() {
    const mine = ++turn;
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = choices.map((select) => select.value);
    const [first, others] = [[], []];
    const isDone = await each(items, (item) => {
      if (!wanted.every((value, at) => !value || item.values[at].includes(value))) return;
      if (!words.every((word) => item.head.includes(word) || item.whole.includes(word))) return;
      (words.every((word) => item.head.includes(word)) ? first : others).push(item);
    }, () => mine === turn);
    if (!isDone) return;
    found = first.concat(others);
    drawn = 0;
    rows.replaceChildren();
    more();
    const [one, many] = page.things;
    const all = `${number(found.length)} of ${number(items.length)} ${items.length === 1 ? one : many}`;
    count.textContent = isRead ? all : `${all}, reading\u2026`;
  }

  function more(most = ROWS) {
    const next = found.slice(drawn, drawn + most);
    drawn += next.length;
    rows.append(...next.map(row));
    const [one, many] = page.things;
    const left = found.length - drawn;
    end.textContent = left ? `${number(left)} more` : found.length || !isRead ? '' : items.length ? `No ${one} matches.` : `There are no ${many}.`;
  }

  function row(item) {
    const about = make('span', { class: 'about' }, item.about);
    const link = make('a', { href: `#${item.id}` }, make('span', { dir: 'auto' }, item.title), about);
    if (item === open) link.setAttribute('aria-current', 'true');
    return make('li', {}, link);
  }

  // One item.

  let open;

  function show(item) {
    open = item;
    document.body.classList.toggle('reading', Boolean(item));
    rows.querySelector('[aria-current]')?.removeAttribute('aria-current');
    rowOf(item)?.setAttribute('aria-current', 'true');
    article.hidden = !item;
    if (!item) return article.replaceChildren();
    const facts = item.facts.flatMap(([name, value]) => [make('dt', {}, name), make('dd', { dir: 'auto' }, value)]);
    article.replaceChildren(
      make('a', { class: 'back', href: '#' }, 'Back to the list'),
      make('h2', { dir: 'auto' }, item.title),
      make('p', { class: 'about' }, item.about),
      make('dl', {}, facts),
      ...(item.text ? [make('div', { class: 'text' }, body(item.text))] : []),
      ...Object.entries(item.related).flatMap(([name, ids]) => [make('h3', {}, name), make('ul', {}, ids.map((id) => make('li', {}, reference(id))))]),
      ...(item.events.length ? [make('h3', {}, page.events), make('ol', { class: 'events' }, item.events.map(event))] : []),
      make('h3', {}, 'Command'),
      command(item.command),
    );
    article.scrollTop = 0;
    article.focus({ preventScroll: true });
  }

  const rowOf = (item) => item && rows.querySelector(`a[href="#${CSS.escape(item.id)}"]`);
  const event = ([time, what]) => make('li', {}, make('time', {}, time), make('span', { dir: 'auto' }, what));

  function reference(id) {
    const item = byId.get(id);
    return item ? make('a', { href: `#${item.id}`, dir: 'auto' }, item.title) : id;
  }

  /** Text with its links to notes. Nothing else in it is a link. */
  function linked(text) {
    return text.split(LINK).map((part, at) => (at % 2 === 0 ? part : byId.has(part) ? reference(part) : `[[${part}]]`));
  }

  /** Markdown as it reads best with little: code blocks, headings, paragraphs. */
  function body(text) {
    const blocks = [];
    let lines = [];
    let fence = '';
    const close = (name, attributes) => {
      const whole = lines.join('\n').replace(/^\n+|\s+$/g, '');
      if (whole) blocks.push(make(name, attributes, name === 'pre' ? whole : linked(whole)));
      lines = [];
    };
    for (const line of text.split('\n')) {
      const mark = line.trim().slice(0, 3);
      const isFence = mark === '```' || mark === '~~~';
      if (fence ? mark === fence : isFence) {
        close(fence ? 'pre' : 'p', {});
        fence = fence ? '' : mark;
      } else if (!fence && /^#{1,6} /.test(line)) {
        close('p', {});
        lines = [line.replace(/^#+ +/, '')];
        close('p', { class: 'heading' });
      } else if (!fence && !line.trim()) {
        close('p', {});
      } else {
        lines.push(line);
      }
    }
    close(fence ? 'pre' : 'p', {});
    return blocks;
  }

  function command(text) {
    const code = make('code', {}, text);
    const copy = make('button', { type: 'button', 'aria-label': `Copy: ${text}` }, 'Copy');
    copy.addEventListener('click', async () => {
      getSelection().selectAllChildren(code);
      try {
        await navigator.clipboard.writeText(text);
        copy.textContent = 'Copied';
      } catch {
        copy.textContent = 'Press Ctrl+C';
      }
    });
    return make('div', { class: 'command' }, code, copy);
  }

  // The other parts.

  let panelTurn = 0;

  async function showPanel(at) {
    const mine = ++panelTurn;
    const { name, about, entries, plots } = page.panels[at];
    panel.replaceChildren(make('h2', {}, name), make('p', { class: 'about' }, about), ...plots.map(plot));
    if (!entries.length && !plots.length) panel.append(make('p', {}, 'Nothing.'));
    await each(entries, (one) => panel.append(entry(one, entries.length === 1)), () => mine === panelTurn);
  }

  function entry({ title, text, commands, is_diff: isDiff }, isOpen) {
    const lines = isDiff ? text.split('\n').map((line) => {
      const kind = { '+': 'added', '-': 'removed' }[line.match(/^  ([+-])/)?.[1]];
      return kind ? make('span', { class: kind }, `${line}\n`) : `${line}\n`;
    }) : [text];
    const made = make('details', {}, make('summary', { dir: 'auto' }, title), commands.map(command), make('pre', {}, lines));
    made.open = isOpen;
    return made;
  }

  function plot({ title, unit, bars }) {
    const HEIGHT = 100;
    const most = Math.max(...bars.map((bar) => bar[1]));
    const sum = bars.reduce((all, bar) => all + bar[1], 0);
    const top = bars.find((bar) => bar[1] === most);
    const told = sum > 0 ? `total ${number(sum)} ${unit}, at most ${number(most)} from ${top[0]}` : 'none in this period';
    const svg = draw('svg', { viewBox: `0 0 ${bars.length * 10} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': `${title}: ${told}` });
    bars.forEach(([label, value], at) => {
      const height = most > 0 ? (value / most) * HEIGHT : 0;
      const tip = draw('title', {}, `${label}: ${number(value)} ${unit}`);
      svg.append(draw('rect', { x: at * 10 + 1, y: HEIGHT - height, width: 8, height }, tip));
    });
    const numbers = bars.filter((bar) => bar[1]).map(([label, value]) => [label, number(value)]);
    return make('figure', {},
      make('figcaption', {}, title), make('div', { class: 'about' }, told), svg,
      make('div', { class: 'ends' }, make('span', {}, bars[0][0]), make('span', {}, bars.at(-1)[0])),
      ...(sum > 0 ? [make('details', {}, make('summary', {}, 'Numbers'), table(['From', unit], numbers))] : []));
  }

  function table(head, lines) {
    const line = (name, cells) => make('tr', {}, cells.map((cell) => make(name, name === 'th' ? { scope: 'col' } : {}, cell)));
    return make('table', {}, make('thead', {}, line('th', head)), make('tbody', {}, lines.map((cells) => line('td', cells))));
  }

  // Where the address leads, and keys.

  let isSearching = false;

  function go() {
    const at = location.hash.slice(1);
    const chosen = page.panels.findIndex((_, index) => at === `part-${index}`);
    const wasPanel = !panel.hidden;
    byName('overview').hidden = chosen >= 0;
    panel.hidden = chosen < 0;
    [...tabs.children].forEach((tab, index) => {
      if (index === chosen + 1) tab.setAttribute('aria-current', 'page');
      else tab.removeAttribute('aria-current');
    });
    const before = open;
    show(chosen < 0 ? byId.get(at) : undefined);
    if (chosen >= 0) showPanel(chosen);
    if (isSearching) focusSearch();
    else if (chosen >= 0 || (wasPanel && !open)) tabs.children[chosen + 1].focus();
    else if (!open && before) rowOf(before)?.focus();
  }

  function focusSearch() {
    isSearching = false;
    search.focus();
    search.select();
  }

  function move(step) {
    const at = [...rows.children].indexOf(document.activeElement.closest('#rows li'));
    if (at + step >= drawn) more();
    if (at + step < 0) search.focus();
    else rows.children[at < 0 ? Math.max(0, [...rows.children].indexOf(rowOf(open)?.parentElement)) : at + step]?.firstChild.focus();
  }

  function pressed(event) {
    const isTyped = event.target === search;
    const isChoice = event.target.tagName === 'SELECT';
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === '/' && !isTyped && !isChoice) {
      // The search is hidden until the address has changed.
      isSearching = Boolean(location.hash);
      if (isSearching) location.hash = '';
      else focusSearch();
    } else if (event.key === 'Escape' && location.hash) {
      location.hash = '';
    } else if (event.key === 'Escape' && search.value) {
      search.value = '';
      update();
    } else if ((event.key === 'ArrowDown' || event.key === 'ArrowUp') && !isChoice && panel.hidden && !article.contains(event.target)) {
      move(event.key === 'ArrowDown' ? 1 : -1);
    } else {
      return;
    }
    event.preventDefault();
  }

  function warning({ text, filter, value }) {
    const many = items.filter((item) => item.values[filter].includes(value)).length;
    if (!many) return '';
    const button = make('button', { type: 'button' }, 'Show');
    button.addEventListener('click', () => {
      search.value = '';
      choices.forEach((select, at) => { select.value = at === filter ? value : ''; });
      location.hash = '';
      update();
    });
    return make('p', { class: 'warning' }, `${text}: ${number(many)} `, button);
  }

  async function start() {
    byName('made').textContent = page.made;
    const names = [page.things[1], ...page.panels.map(({ name }) => name)];
    tabs.append(...names.map((name, at) => make('a', { href: at ? `#part-${at - 1}` : '#' }, name[0].toUpperCase() + name.slice(1))));
    rows.setAttribute('aria-label', `${tabs.firstChild.textContent} found`);
    search.addEventListener('input', update);
    document.addEventListener('keydown', pressed);
    addEventListener('hashchange', go);
    addEventListener('beforeprint', () => {
      if (drawn < PRINTED && panel.hidden && !open) more(PRINTED - drawn);
      panel.querySelectorAll('details').forEach((one) => { one.open = true; });
    });
    new IntersectionObserver((seen) => { if (seen.at(-1).isIntersecting && drawn < found.length) more(); }).observe(end);
    for (const block of document.querySelectorAll('script.items')) {
      await each(parse(block), add);
      if (drawn < ROWS) await update();
      await pause();
    }
    isRead = true;
    fillChoices();
    byName('warnings').append(...page.warnings.map(warning));
    await update();
    go();
    document.documentElement.dataset.ready = 'true';
  }
  start();
})();
