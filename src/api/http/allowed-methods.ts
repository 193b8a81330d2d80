import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { Refusal } from '../../domain/refusal.ts'

interface Address {
  parts: readonly string[]
  parameters: number
  methods: Set<string>
}

/** Knows the methods of each address, to distinguish a wrong method (405) from an unknown address (404). */
export class AllowedMethods {
  readonly #byPattern = new Map<string, Address>()

  add({ url, method }: Pick<RouteOptions, 'url' | 'method'>): void {
    const address = this.#byPattern.get(url) ?? createAddress(url)
    for (const name of [method].flat()) address.methods.add(name.toUpperCase())
    this.#byPattern.set(url, address)
  }

  /**
   * The methods of the matching pattern with the fewest parameters; empty if none matches.
   * @param path with valid percent-encoding
   */
  find(path: string): string[] {
    const segments = path.split('/').map(decodeURIComponent)
    const matching = [...this.#byPattern.values()].filter(address => matches(address, segments))
    const closest = matching.sort((a, b) => a.parameters - b.parameters)[0]
    return [...(closest?.methods ?? [])].sort()
  }

  /** Returns the refusal for a request without a route. Sets `Allow` if the address has other methods. */
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

function matches({ parts }: Address, segments: readonly string[]): boolean {
  return parts.length === segments.length && parts.every((part, i) => isParameter(part) || part === segments[i])
}
