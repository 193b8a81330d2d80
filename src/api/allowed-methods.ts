import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { Refusal } from '../domain/refusal.ts'

/** Knows which methods an address answers, so that a wrong method is told from a wrong address. */
export class AllowedMethods {
  readonly #byPattern = new Map<string, { parts: string[]; methods: Set<string> }>()

  add(route: Pick<RouteOptions, 'url' | 'method'>): void {
    const known = this.#byPattern.get(route.url) ?? { parts: route.url.split('/'), methods: new Set() }
    for (const method of [route.method].flat()) known.methods.add(method.toUpperCase())
    this.#byPattern.set(route.url, known)
  }

  /** Empty for an address that does not exist. */
  find(path: string): string[] {
    const found = new Set<string>()
    const given = path.split('/')
    for (const { parts, methods } of this.#byPattern.values()) {
      const matches = parts.length === given.length && parts.every((part, i) => part[0] === ':' || part === given[i])
      if (matches) for (const method of methods) found.add(method)
    }
    return [...found].sort()
  }

  /** What to answer a request for which there is no route; sets `Allow` where another method would do. */
  refuse(request: FastifyRequest, reply: FastifyReply): Refusal {
    const methods = this.find(request.url.split(/[?#]/, 1)[0] ?? '')
    if (methods.length === 0) return new Refusal('not_found')
    reply.header('allow', methods.join(', '))
    return new Refusal('method_not_allowed')
  }
}
