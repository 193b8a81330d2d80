import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { createGzip } from 'node:zlib'
import Provider from 'oidc-provider'

export const CLIENT = { id: 'pombal', secret: 'a client secret of these tests, with : % & +' }
const KEY_ID = 'key-1'
const SIGN_IN_PAGE = `<!doctype html><title>Castle</title><form method="post">
  <input name="login"><button>Sign in</button><button name="cancel" value="1">Cancel</button></form>`

export interface Person {
  email?: string
  email_verified?: boolean | string
}

/** What the provider does instead of its work. */
export type Fault = 'none' | 'hang' | 'status 503' | 'garbage' | 'endless'

export interface ProviderOptions {
  redirectUri: string
  /** Reports the e-mail address in the ID token. Default: only to a caller with the access token. */
  emailInToken?: boolean
}

/** A real OpenID Connect provider (oidc-provider) on loopback, with its own pages for signing in. */
export class TestProvider {
  readonly issuer: string
  /** By the name that they sign in with at the provider, which is their subject. */
  readonly people = new Map<string, Person>()
  /** Changes a claim of the next ID tokens, which are signed again. */
  claims: Record<string, unknown> = {}
  /** Signs the next ID tokens instead of the published key. */
  foreignKey: KeyObject | null = null
  /** The paths that have the fault. */
  fault: { is: Fault; at: RegExp } = { is: 'none', at: /^/ }
  /** The requests so far. */
  readonly requests: string[] = []
  readonly #server: Server

  private constructor(server: Server, issuer: string) {
    this.#server = server
    this.issuer = issuer
  }

  static async start(options: ProviderOptions): Promise<TestProvider> {
    const server = createServer()
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const provider = new TestProvider(server, issuer)
    const real = provider.#create(options)
    server.on('request', (request, response) => provider.#handle(request, response, real))
    return provider
  }

  #create({ redirectUri, emailInToken = false }: ProviderOptions) {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
    const provider = new Provider(this.issuer, {
      clients: [{ client_id: CLIENT.id, client_secret: CLIENT.secret, redirect_uris: [redirectUri] }],
      jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid: KEY_ID, use: 'sig', alg: 'RS256' } as never] },
      cookies: { keys: ['a key of these tests'] },
      claims: { openid: ['sub'], email: ['email', 'email_verified'] },
      conformIdTokenClaims: !emailInToken,
      pkce: { required: () => true },
      features: { devInteractions: { enabled: false } },
      interactions: { url: (_, { uid }) => `/interaction/${uid}` },
      ttl: { AccessToken: 600, AuthorizationCode: 60, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
      findAccount: (_, id) => ({
        accountId: id,
        claims: () => ({ sub: id, ...this.people.get(id) }),
      }),
    })
    provider.use(async (ctx, next) => {
      await next()
      const body = ctx.body as { id_token?: string } | undefined
      if (ctx.path !== '/token' || !body?.id_token) return
      if (Object.keys(this.claims).length === 0 && this.foreignKey === null) return
      ctx.body = { ...body, id_token: this.#signAgain(body.id_token, this.foreignKey ?? privateKey) }
    })
    return provider
  }

  #signAgain(token: string, key: KeyObject): string {
    const [header, payload = ''] = token.split('.')
    const claims = { ...JSON.parse(Buffer.from(payload, 'base64url').toString()), ...this.claims }
    const content = `${header}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`
    return `${content}.${sign('RSA-SHA256', Buffer.from(content), key).toString('base64url')}`
  }

  #handle(request: IncomingMessage, response: ServerResponse, real: Provider): void {
    this.requests.push(`${request.method} ${request.url}`)
    const fault = this.fault.at.test(request.url ?? '') ? this.fault.is : 'none'
    if (fault === 'hang') return
    if (fault === 'status 503') response.writeHead(503).end()
    else if (fault === 'garbage') response.writeHead(200, { 'content-type': 'application/json' }).end('{"issuer":')
    else if (fault === 'endless') sendEndlessly(response)
    else if (request.url?.startsWith('/interaction/')) void this.#interact(request, response, real)
    else void real.callback()(request, response)
  }

  /** The page where people sign in. They agree by doing so. */
  async #interact(request: IncomingMessage, response: ServerResponse, real: Provider): Promise<void> {
    if (request.method === 'GET') {
      response.writeHead(200, { 'content-type': 'text/html' }).end(SIGN_IN_PAGE)
      return
    }
    const form = new URLSearchParams(await text(request))
    const accountId = form.get('login') ?? ''
    if (form.has('cancel')) {
      await real.interactionFinished(request, response, { error: 'access_denied' })
      return
    }
    const grant = new real.Grant({ accountId, clientId: CLIENT.id })
    grant.addOIDCScope('openid email')
    const grantId = await grant.save()
    await real.interactionFinished(request, response, { login: { accountId }, consent: { grantId } })
  }

  /** Also closes connections that hang. */
  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise(resolve => this.#server.close(resolve))
  }

  /**
   * Does what a browser and a person do: opens the page, signs in and agrees, or cancels.
   * @returns the address that the provider sends the browser back to
   */
  async visit(url: string, name: string, choice: 'agree' | 'cancel' = 'agree'): Promise<URL> {
    const jar = new Map<string, string>()
    const open = async (target: URL, form?: Record<string, string>): Promise<Response> => {
      const cookie = Array.from(jar, ([key, value]) => `${key}=${value}`).join('; ')
      const body = form && new URLSearchParams(form)
      const init = { redirect: 'manual', headers: { cookie }, ...(body && { method: 'POST', body }) } as const
      const response = await fetch(target, init)
      for (const set of response.headers.getSetCookie()) {
        const [pair = ''] = set.split(';')
        jar.set(pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1))
      }
      return response
    }
    let at = new URL(url)
    for (let steps = 0; steps < 12; steps += 1) {
      if (at.origin !== this.issuer) return at
      let response = await open(at)
      if (response.status === 200) {
        response = await open(at, { login: name, ...(choice === 'cancel' && { cancel: '1' }) })
      }
      const location = response.headers.get('location')
      if (location === null) throw new Error(`The provider answers ${response.status}: ${await response.text()}`)
      at = new URL(location, at)
    }
    throw new Error('The provider does not send the browser back.')
  }
}

/** JSON that does not end, and is short while it is compressed. */
function sendEndlessly(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
  function* pieces() {
    yield '{"email":"'
    while (true) yield 'x'.repeat(64 * 1024)
  }
  const body = Readable.from(pieces()).pipe(createGzip())
  body.pipe(response).on('close', () => body.destroy())
}
