import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { Refusal } from '../../domain/refusal.ts'

interface Address {
  parts: readonly string[]
  parameters: number
  methods: Set<string>
}

/** Knows which methods an address answers, so that a wrong method is told from a wrong address. */
export class AllowedMethods {
  readonly #byPattern = new Map<string, Address>()

  add({ url, method }: Pick<RouteOptions, 'url' | 'method'>): void {
    const address = this.#byPattern.get(url) ?? createAddress(url)
    for (const name of [method].flat()) address.methods.add(name.toUpperCase())
    this.#byPattern.set(url, address)
  }

  /**
   * Of the pattern with the fewest parameters: `/messages/text` is not a message. Empty where there is nothing.
   * @param path percent-encoded, and that properly
   */
  find(path: string): string[] {
    const given = path.split('/').map(decodeURIComponent)
    const matching = [...this.#byPattern.values()].filter(address => matches(address, given))
    const closest = matching.sort((a, b) => a.parameters - b.parameters)[0]
    return [...(closest?.methods ?? [])].sort()
  }

  /** What to answer a request for which there is no route; sets `Allow` where another method would do. */
  refuse(request: FastifyRequest, reply: FastifyReply): Refusal {
    const methods = this.find(request.url.split(/[?#]/, 1)[0] ?? '')
    if (methods.length === 0) return new Refusal('not_found')
    reply.header('allow', methods.join(', '))
    return new Refusal('method_not_allowed')
  }
}

function createAddress(pattern: string): Address {
  const parts = pattern.split('/')
  return { parts, parameters: parts.filter(isParameter).length, methods: new Set() }
}

function isParameter(part: string): boolean {
  return part.startsWith(':')
}

function matches({ parts }: Address, given: readonly string[]): boolean {
  return parts.length === given.length && parts.every((part, i) => isParameter(part) || part === given[i])
}
