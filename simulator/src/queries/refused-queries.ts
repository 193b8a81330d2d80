import type { Node } from '../wire/nodes.ts'

/** The kinds of refused queries that are reported. A hostile client could invent any number. */
const MAX_REPORTED = 1000

/** Reports each kind of query that the network does not support, once. */
export class RefusedQueries {
  readonly #log: (line: string) => void
  readonly #reported = new Set<string>()

  constructor(log: (line: string) => void) {
    this.#log = log
  }

  /** @param kind queries of one kind are reported once */
  report(kind: string, query: Node): void {
    if (this.#reported.has(kind) || this.#reported.size === MAX_REPORTED) return
    this.#reported.add(kind)
    this.#log(`refused a query that the simulator does not support: ${describe(query)}`)
  }
}

/** The query as XML. Content that is not a list of nodes may be private, so only its length is shown. */
export function describe({ tag, attrs, content }: Node): string {
  const shown = Object.entries(attrs).map(([name, value]) => ` ${name}="${value}"`)
  const opening = `<${tag}${shown.join('')}`
  if (content === undefined) return `${opening}/>`
  const inside = Array.isArray(content) ? content.map(describe).join('') : `${content.length} bytes`
  return `${opening}>${inside}</${tag}>`
}
