import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { GUIDES } from '../src/pages/guides/names.ts'
import { renderMarkdown } from './markdown.ts'
import { addressOf } from './plugin.ts'

const DOCS = join(import.meta.dirname, '../../docs')
const render = (text: string) => renderMarkdown(text, href => addressOf(href, 'panel'))

function guide(name: string): string {
  return renderMarkdown(readFileSync(join(DOCS, `${name}.md`), 'utf8'), href => addressOf(href, name))
}

test('headings, lists, tables, code and links become HTML', () => {
  expect(render('## Send a `text`')).toBe('<h2 id="send-a-text">Send a <code>text</code></h2>')
  expect(render('A **bold** and *slanted*\nline')).toBe('<p>A <strong>bold</strong> and <em>slanted</em>\nline</p>')
  expect(render('1. one\n2. two\n   more\n   - inner')).toBe(
    '<ol><li>one</li><li><p>two\nmore</p>\n<ul><li>inner</li></ul></li></ol>',
  )
  expect(render('| a | b |\n|---|---|\n| `x\\|y` | z |')).toContain('<td><code>x|y</code></td><td>z</td>')
  expect(render('```sh\n# <not> a heading\n```')).toContain('<code># &lt;not&gt; a heading</code>')
  expect(render('[a](webhooks.md#b), [c](architecture.md), [d](https://example.org)')).toBe(
    '<p><a href="/guides/webhooks#b">a</a>, c, <a href="https://example.org" target="_blank" rel="noreferrer">d</a></p>',
  )
})

test('text never becomes markup', () => {
  const hostile = '<img src=x onerror=alert(1)> `<b>` **<i>** [<u>](https://x.org/"onclick="y) | <s>'
  for (const text of [
    hostile,
    `# ${hostile}`,
    `- ${hostile}`,
    `| ${hostile} |`,
    `> ${hostile}`,
    `\`\`\`\n${hostile}\n\`\`\``,
  ]) {
    expect(render(text)).not.toMatch(/<(img|b|i|u|s)\b|"onclick/)
  }
})

describe.each(GUIDES)('%s', name => {
  test('is rendered whole: no mark is left over, and every element is closed', () => {
    const html = guide(name)
    const prose = html.replaceAll(/<(pre|code)\b[\s\S]*?<\/\1>/g, '')
    expect(prose.match(/\*\*|```|\]\(|^#+ |^\|/gm) ?? []).toEqual([])
    const open: string[] = []
    for (const [, slash, tag = ''] of html.matchAll(/<(\/?)([a-z0-9]+)[^>]*>/g)) {
      if (slash) expect(open.pop()).toBe(tag)
      else open.push(tag)
    }
    expect(open).toEqual([])
  })

  test('links only to headings that exist', () => {
    const links = Array.from(guide(name).matchAll(/href="\/guides\/([\w-]+)(?:#([^"]+))?"/g))
    const missing = links.filter(([, to = '', anchor]) => anchor && !guide(to).includes(`id="${anchor}"`))
    expect(missing.map(([link]) => link)).toEqual([])
  })
})
