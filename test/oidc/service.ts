import { findFreePort } from '../free-port.ts'
import { noteSecret } from '../logs/log-capture.ts'
import { type Service, startService } from '../service.ts'
import { CLIENT, TestProvider } from './provider.ts'

/** The settings of a service that signs people in with the provider, at a port chosen before both start. */
export function settingsFor(port: number, issuer: string): Record<string, string> {
  noteSecret(CLIENT.secret)
  return {
    PORT: String(port),
    PUBLIC_URL: `http://127.0.0.1:${port}`,
    OIDC_ISSUER: issuer,
    OIDC_CLIENT_ID: CLIENT.id,
    OIDC_CLIENT_SECRET: CLIENT.secret,
    OIDC_NAME: 'Castle',
  }
}

export function redirectUriAt(port: number): string {
  return `http://127.0.0.1:${port}/sign-in/oidc`
}

export interface Answer {
  status: number
  code: string | undefined
  // biome-ignore lint/suspicious/noExplicitAny: a test reads into whatever was answered
  body: any
  cookies: string[]
}

/** The requests of one browser, with its cookies. */
export class TestBrowser {
  readonly #service: Service
  readonly #jar = new Map<string, string>()
  readonly #headers: Record<string, string>

  constructor(service: Service, headers: Record<string, string> = {}) {
    this.#service = service
    this.#headers = headers
  }

  get cookie(): string {
    return Array.from(this.#jar, ([name, value]) => `${name}=${value}`).join('; ')
  }

  async send(method: string, path: string, body?: object, headers: Record<string, string> = {}): Promise<Answer> {
    const { origin } = new URL(this.#service.url!)
    const response = await fetch(`${origin}/admin/v1${path}`, {
      method,
      headers: {
        origin,
        cookie: this.cookie,
        ...(body && { 'content-type': 'application/json' }),
        ...this.#headers,
        ...headers,
      },
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    const answer = text === '' ? undefined : JSON.parse(text)
    const cookies = response.headers.getSetCookie()
    for (const set of cookies) {
      const [name = '', value = ''] = (set.split(';')[0] ?? '').split('=')
      if (value === '') this.#jar.delete(name)
      else this.#jar.set(name, value)
    }
    return { status: response.status, code: answer?.error?.code, body: answer, cookies }
  }

  /** @returns the page of the provider. @throws Error with the refusal's code */
  async begin(body: object = {}): Promise<string> {
    const begun = await this.send('POST', '/session/oidc', body)
    if (begun.status !== 200) throw new Error(begun.code)
    return begun.body.data.url
  }

  /** @param answer the query of the address that the provider sent the browser back to */
  finish(answer: string): Promise<Answer> {
    return this.send('POST', '/session/oidc/finish', { answer })
  }
}

/** A service whose people sign in with a provider. Each browser calls from an address of its own. */
export class OidcService {
  readonly service: Service
  readonly provider: TestProvider
  #browsers = 0

  private constructor(service: Service, provider: TestProvider) {
    this.service = service
    this.provider = provider
  }

  static async start(env: Record<string, string> = {}, emailInToken = false): Promise<OidcService> {
    const port = await findFreePort()
    const provider = await TestProvider.start({ redirectUri: redirectUriAt(port), emailInToken })
    const service = await startService({
      env: { TRUSTED_PROXIES: '127.0.0.1', ...settingsFor(port, provider.issuer), ...env },
    })
    return new OidcService(service, provider)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service.dispose()
    await this.provider.close()
  }

  browser(): TestBrowser {
    this.#browsers += 1
    return new TestBrowser(this.service, { 'x-forwarded-for': `192.0.2.${this.#browsers}` })
  }

  async admin(method: string, path: string, body?: object) {
    const response = await fetch(`${this.service.url}/admin/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.service.adminKey}`,
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
  }

  /** @returns the account's ID, and the token of its link */
  async invite(name: string, role = 'viewer'): Promise<{ id: string; token: string }> {
    const { body } = await this.admin('POST', '/accounts', { name, role })
    const token = body.data.url.split('#')[1] as string
    noteSecret(token)
    return { id: body.data.account.id, token }
  }

  /** The whole sign-in of a person, known to the provider by `login`. */
  async signIn(login: string, browser = this.browser(), begin: object = {}): Promise<Answer> {
    const back = await this.provider.visit(await browser.begin(begin), login)
    return browser.finish(back.search)
  }

  async auditOf(action: string): Promise<{ by: string; details: Record<string, unknown> }[]> {
    return (await this.admin('GET', `/audit?action=${action}`)).body.data
  }
}
