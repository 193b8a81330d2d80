import { hash, randomBytes } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { Refusal } from '../../domain/refusal.ts'
import type { FoundHandout, HandoutKey, HandoutRequest } from '../../store/handouts/handouts.ts'
import { callerAddress } from '../admin/sign-in/caller-address.ts'
import { type Cookie, isHttps, readCookie, writeCookie } from '../admin/sign-in/cookies.ts'
import { limitsOfLinks } from '../admin/sign-in/limits.ts'
import { WrongKeys } from '../admin/sign-in/wrong-keys.ts'
import type { Api, ApiContext } from '../context.ts'
import { checkNumber, tokenDigest } from '../input.ts'
import { linkPageSchema, linkPageView } from '../resources/people/handout.ts'
import { dataOf } from '../resources/schema-kit.ts'
import { answerPasskeyByLink } from './answer-passkey.ts'
import { tokenSchema } from './token-schema.ts'

/** Small, because callers without a key can send it. */
const MAX_BODY_BYTES = 4_096
const COOKIE_BYTES = 32
/** Links last at most 24 h. */
const COOKIE_SECONDS = 24 * 60 * 60
/** Identifies the browser, for all links that it opens. */
const COOKIE: Cookie = { name: 'pombal_link', path: '/link', format: /^([A-Za-z0-9_-]{43})$/ }

/** The linking page shows what these calls return. They need the link's token, and no sign-in. */
export function registerLinkPage(api: Api, context: ApiContext): void {
  const page = new LinkPage(context)
  readLink(api, page)
  startLink(api, page)
  answerPasskeyByLink(api, context, page)
}

function readLink(api: Api, page: LinkPage): void {
  api.post(
    '/link/read',
    {
      bodyLimit: MAX_BODY_BYTES,
      schema: {
        operationId: 'readLink',
        summary: 'Read the linking page',
        description: 'Changes nothing. Sets a cookie, by which `startLink` recognises the browser.',
        tags: ['Link page'],
        security: [],
        body: Type.Object({ token: tokenSchema }, { title: 'LinkToRead' }),
        response: { 200: dataOf(linkPageSchema, 'What the page shows.') },
      },
      config: { refusals: ['link_not_found', 'link_in_use', 'too_many_attempts'], quiet: true },
    },
    async (request, reply) => ({ data: await page.read(request, page.keyOf(request, request.body.token, reply)) }),
  )
}

function startLink(api: Api, page: LinkPage): void {
  api.post(
    '/link/start',
    {
      bodyLimit: MAX_BODY_BYTES,
      schema: {
        operationId: 'startLink',
        summary: 'Request a code through a link',
        description:
          'Binds the link to this browser, and requests a QR code, or a pairing code for `phone`. At most one ' +
          'request in 10 s, and 3 pairing codes per link.',
        tags: ['Link page'],
        security: [],
        body: Type.Object(
          {
            token: tokenSchema,
            phone: Type.Optional(
              Type.String({
                description: 'The number to link by pairing code, digits only. Without it: by QR code.',
                examples: ['5511987654321'],
              }),
            ),
          },
          { title: 'LinkToStart' },
        ),
        response: { 202: dataOf(linkPageSchema, 'Accepted. `readLink` shows the progress.') },
      },
      config: {
        refusals: [
          'link_not_found',
          'link_in_use',
          'already_linked',
          'pairing_codes_spent',
          'too_many_attempts',
          'sandbox_disabled',
        ],
      },
    },
    async (request, reply) => {
      const { token, phone } = request.body
      if (phone !== undefined) checkNumber('phone', phone)
      const key = page.keyOf(request, token, null)
      await page.start(request, key, phone ?? null)
      return reply.code(202).send({ data: await page.read(request, key) })
    },
  )
}

class LinkPage {
  readonly #context: ApiContext
  readonly #wrongTokens: WrongKeys

  constructor(context: ApiContext) {
    this.#context = context
    this.#wrongTokens = new WrongKeys(context.store.sessions)
  }

  /** @param reply gets a new cookie if the browser has none. Null: a browser without a cookie is refused. */
  keyOf(request: FastifyRequest, token: string, reply: FastifyReply | null): HandoutKey {
    const isSecure = isHttps(request, this.#context.settings.publicUrl ?? null)
    let browser = readCookie(request, COOKIE, isSecure)?.[0]
    if (browser === undefined) {
      if (reply === null) throw new Refusal('link_in_use')
      browser = randomBytes(COOKIE_BYTES).toString('base64url')
      reply.header('set-cookie', writeCookie(COOKIE, { value: browser, maxAge: COOKIE_SECONDS, isSecure }))
    }
    return { digest: Buffer.from(tokenDigest(token), 'hex'), browser: hash('sha256', browser, 'buffer') }
  }

  async read(request: FastifyRequest, key: HandoutKey) {
    const handout = await this.find(request, key)
    const isLinking = handout.openedAt !== null && handout.usedAt === null
    if (!isLinking) return linkPageView(handout, null)
    const { instances, connections } = this.#context.store
    const [instance, connection] = await Promise.all([
      instances.find(handout.instanceId),
      connections.find(handout.instanceId),
    ])
    if (instance === null || connection === null) throw new Refusal('link_not_found')
    return linkPageView(handout, { instance, connection })
  }

  async start(request: FastifyRequest, key: HandoutKey, phone: string | null): Promise<void> {
    const { store, sandbox } = this.#context
    const { id, instanceId } = await this.find(request, key)
    const instance = await store.instances.find(instanceId)
    if (instance?.kind === 'sandbox' && !sandbox.enabled) throw new Refusal('sandbox_disabled')
    const entry = {
      actor: id,
      actorName: null,
      action: 'startLink',
      instanceId,
      address: callerAddress(request),
      details: { by: phone === null ? 'qr' : 'pairing_code' },
    }
    const outcome = await store.audit.during(entry, pending => {
      request.audit = pending
      return store.handouts.request(key, phone)
    })
    if (outcome.kind !== 'requested' && outcome.kind !== 'under_way') throw refusalOf(outcome)
  }

  /** @throws Refusal, also for too many unknown tokens from one address */
  async find(request: FastifyRequest, key: HandoutKey) {
    const found = await this.#context.store.handouts.find(key)
    if (found.kind === 'found') return found.handout
    const waitMs = found.kind === 'none' ? await this.#wrongTokens.count(limitsOfLinks(callerAddress(request))) : 0
    throw waitMs > 0
      ? tooManyAttempts(waitMs, 'Too many wrong links: wait for the Retry-After time.')
      : refusalOf(found)
  }
}

function refusalOf(
  outcome: Exclude<FoundHandout | HandoutRequest, { kind: 'found' | 'requested' | 'under_way' }>,
): Refusal {
  switch (outcome.kind) {
    case 'none':
      return new Refusal('link_not_found')
    case 'in_use':
      return new Refusal('link_in_use')
    case 'linked':
      return new Refusal('already_linked')
    case 'codes_spent':
      return new Refusal('pairing_codes_spent')
    case 'too_soon':
      return tooManyAttempts(outcome.waitMs, 'A code was requested just now: wait for the Retry-After time.')
  }
}

function tooManyAttempts(waitMs: number, message: string): Refusal {
  return new Refusal('too_many_attempts', message, { retryAfterSeconds: Math.ceil(waitMs / 1000) })
}
