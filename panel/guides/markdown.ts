/**
 * Renders the Markdown that our own documents use: headings, paragraphs, lists, tables, quotes, code and links. It runs
 * while the panel is built, so the pages carry no parser. Text never becomes markup.
 */
export function renderMarkdown(source: string, resolve: LinkResolver): string {
  return renderBlocks(source.split('\n'), resolve)
}

/** The address of a link in the panel. Null if there is none: then only its text is shown. */
export type LinkResolver = (href: string) => string | null

/** As GitHub names a heading in links. */
export function slugOf(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-')
}

const FENCE = /^```(\w*)/
const HEADING = /^(#{1,6}) (.*)$/
const ITEM = /^([-*]|\d+\.) +/

function renderBlocks(lines: readonly string[], resolve: LinkResolver): string {
  const blocks: string[] = []
  for (let at = 0; at < lines.length; ) {
    const line = lines[at]!
    const end = endOfBlock(lines, at)
    if (line.trim() !== '') blocks.push(renderBlock(lines.slice(at, end), resolve))
    at = end
  }
  return blocks.join('\n')
}

function renderBlock(lines: readonly string[], resolve: LinkResolver): string {
  const [first = ''] = lines
  const inline = (text: string) => renderInline(text, resolve)
  if (FENCE.test(first)) return `<pre tabindex="0"><code>${escapeHtml(lines.slice(1, -1).join('\n'))}</code></pre>`
  const [, marks, title] = HEADING.exec(first) ?? []
  if (marks && title) return `<h${marks.length} id="${slugOf(title)}">${inline(title)}</h${marks.length}>`
  if (first.startsWith('|')) return renderTable(lines, inline)
  if (first.startsWith('>')) {
    const quoted = lines.map(line => line.replace(/^> ?/, ''))
    return `<blockquote>${renderBlocks(quoted, resolve)}</blockquote>`
  }
  if (ITEM.test(first)) return renderList(lines, resolve)
  return `<p>${inline(lines.join('\n'))}</p>`
}

/** The index after the last line of the block that starts at `from`. */
function endOfBlock(lines: readonly string[], from: number): number {
  const first = lines[from]!
  const isPart = (test: (line: string) => boolean) => {
    let end = from + 1
    while (end < lines.length && test(lines[end]!)) end += 1
    return end
  }
  if (FENCE.test(first)) return isPart(line => !line.startsWith('```')) + 1
  if (HEADING.test(first) || first.trim() === '') return from + 1
  if (first.startsWith('|')) return isPart(line => line.startsWith('|'))
  if (first.startsWith('>')) return isPart(line => line.startsWith('>'))
  const startsBlock = (line: string) => FENCE.test(line) || line.startsWith('|') || /^[-*] /.test(line)
  if (!ITEM.test(first)) return isPart(line => line.trim() !== '' && !startsBlock(line) && !HEADING.test(line))
  const isOrdered = /^\d/.test(first)
  let end = from + 1
  while (end < lines.length) {
    const line = lines[end]!
    const next = line.trim() === '' ? (lines[end + 1] ?? '') : line
    const continues = /^\s+\S/.test(next) || (ITEM.test(next) && /^\d/.test(next) === isOrdered)
    if (!continues) break
    end += line.trim() === '' ? 2 : 1
  }
  return end
}

function renderList(lines: readonly string[], resolve: LinkResolver): string {
  const items: string[][] = []
  for (const line of lines) {
    const [marker] = ITEM.exec(line) ?? []
    if (marker) items.push([line.slice(marker.length)])
    else items.at(-1)?.push(line.replace(/^ {1,3}/, ''))
  }
  const tag = /^\d/.test(lines[0]!) ? 'ol' : 'ul'
  const rendered = items.map(item => {
    const content = renderBlocks(item, resolve)
    const [, only] = /^<p>((?:(?!<p>)[\s\S])*)<\/p>$/.exec(content) ?? []
    return `<li>${only ?? content}</li>`
  })
  return `<${tag}>${rendered.join('')}</${tag}>`
}

function renderTable(lines: readonly string[], inline: (text: string) => string): string {
  const cellsOf = (line: string) =>
    line
      .replace(/^\||\|\s*$/g, '')
      .split(/(?<!\\)\|/)
      .map(cell => inline(cell.trim().replaceAll('\\|', '|')))
  const [head = '', , ...rows] = lines
  const row = (tag: string, line: string) =>
    `<tr>${cellsOf(line)
      .map(cell => `<${tag}>${cell}</${tag}>`)
      .join('')}</tr>`
  const body = rows.map(line => row('td', line)).join('')
  return `<div class="guide-table" tabindex="0"><table><thead>${row('th', head)}</thead><tbody>${body}</tbody></table></div>`
}

const INLINE = new RegExp(
  [
    /(?<ticks>``?)(?<code>.+?)\k<ticks>/,
    /!\[[^\]]*\]\([^)]*\)/,
    /\[(?<label>(?:`[^`]*`|[^\]])+)\]\((?<href>[^)]+)\)/,
    /\*\*(?<bold>.+?)\*\*/,
    /(?<![\w*])\*(?=\S)(?<italic>[^*]+?)(?<=\S)\*(?![\w*])/,
    /<(?<bare>https?:[^>]+)>/,
    /\\(?<escaped>[\\`*_|<>[\]])/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'gs',
)

function renderInline(text: string, resolve: LinkResolver): string {
  let html = ''
  let done = 0
  for (const match of text.matchAll(INLINE)) {
    html += escapeHtml(text.slice(done, match.index))
    done = match.index + match[0].length
    const { code, label, href, bold, italic, bare, escaped } = match.groups ?? {}
    if (code !== undefined) html += `<code>${escapeHtml(code)}</code>`
    else if (label !== undefined) html += renderLink(renderInline(label, resolve), resolve(href ?? ''))
    else if (bold !== undefined) html += `<strong>${renderInline(bold, resolve)}</strong>`
    else if (italic !== undefined) html += `<em>${renderInline(italic, resolve)}</em>`
    else if (bare !== undefined) html += renderLink(escapeHtml(bare), bare)
    else if (escaped !== undefined) html += escapeHtml(escaped)
  }
  return html + escapeHtml(text.slice(done))
}

function renderLink(html: string, href: string | null): string {
  if (href === null) return html
  const leaves = /^https?:/.test(href) ? ' target="_blank" rel="noreferrer"' : ''
  return `<a href="${escapeHtml(href)}"${leaves}>${html}</a>`
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
