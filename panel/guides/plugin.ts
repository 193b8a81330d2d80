import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import type { Plugin } from 'vite'
import { GUIDES } from '../src/pages/guides/names.ts'
import { renderMarkdown } from './markdown.ts'

const QUERY = '?guide'

/** Turns an import of `docs/NAME.md?guide` into the HTML of the document. */
export function guides(): Plugin {
  return {
    name: 'guides',
    enforce: 'pre',
    load(id) {
      if (!id.endsWith(`.md${QUERY}`)) return null
      const file = id.slice(0, -QUERY.length)
      this.addWatchFile(file)
      const html = renderMarkdown(readFileSync(file, 'utf8'), href => addressOf(href, basename(file, '.md')))
      return `export const html = ${JSON.stringify(html)}`
    },
  }
}

/** Documents that are not guides, such as decisions, have no address in the panel. */
export function addressOf(href: string, guide: string): string | null {
  if (/^https?:/.test(href)) return href
  if (href.startsWith('#')) return `/guides/${guide}${href}`
  const [, name, anchor = ''] = /^([\w-]+)\.md(#.*)?$/.exec(href) ?? []
  return GUIDES.some(known => known === name) ? `/guides/${name}${anchor}` : null
}
