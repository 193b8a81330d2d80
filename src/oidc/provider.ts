import {
  AuthorizationResponseError,
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  ClientSecretBasic,
  ClientSecretPost,
  type Configuration,
  calculatePKCECodeChallenge,
  clockTolerance,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
} from 'openid-client'
import { shareCalls } from '../kit/share-calls.ts'
import { isUnreachable, reasonOf } from './errors.ts'
import { fetchAtMost } from './fetch-at-most.ts'

const TIMEOUT_MS = 5_000
const CLOCK_TOLERANCE_SECONDS = 60
/** How long the provider's addresses are kept. */
const KEPT_MS = 10 * 60_000
const SCOPE = 'openid email'
/** OpenID Connect Core, section 2. */
const MAX_SUBJECT_LENGTH = 255

interface OidcOptions {
  /** The name that people see. */
  name: string
  issuer: URL
  clientId: string
  clientSecret: string
  /** The page that the provider sends the browser back to. */
  redirectUri: URL
  /** The time limit of each request. */
  timeoutMs?: number
}

type ProviderSettings = Pick<OidcOptions, 'name' | 'issuer' | 'clientId' | 'clientSecret'>

/** Null if none is configured. Sends no request before somebody signs in, so the start does not depend on the provider. */
export function openProvider(settings: { oidc: ProviderSettings | null; publicUrl: URL | null }): OidcProvider | null {
  const { oidc, publicUrl } = settings
  if (oidc === null || publicUrl === null) return null
  return new OidcProvider({ ...oidc, redirectUri: new URL('/sign-in/oidc', publicUrl) })
}

/** The secrets of one sign-in. They stay in the browser that began it. */
export interface Attempt {
  state: string
  nonce: string
  verifier: string
}

/** `reason` is for the log. It contains no claim, code or token. */
export type Begun = { kind: 'begun'; url: string; attempt: Attempt } | { kind: 'unreachable'; reason: string }

/** `email` is null if the provider reports none or could not be asked. `problem` is for the log. */
interface EmailRead {
  email: { address: string; isVerified: boolean } | null
  problem: string | null
}

type Completed =
  | { kind: 'identified'; issuer: string; subject: string; readEmail(): Promise<EmailRead> }
  | { kind: 'denied' }
  | { kind: 'unreachable'; reason: string }
  | { kind: 'failed'; reason: string }

/**
 * An OpenID Connect provider: authorization code flow with PKCE, state and nonce. It sends requests only while somebody signs in,
 * and each has a time limit.
 */
class OidcProvider {
  readonly #options: OidcOptions
  readonly #timeoutMs: number
  #known: { configuration: Configuration; until: number } | null = null
  readonly #discover = shareCalls(() => this.#readConfiguration())

  constructor(options: OidcOptions) {
    this.#options = options
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS
  }

  get name(): string {
    return this.#options.name
  }

  /** Distinguishes this client from any other, so that no attempt continues after a change of the settings. */
  get id(): string {
    return JSON.stringify([this.#options.issuer.href, this.#options.clientId])
  }

  /** @returns the page of the provider to open, and what `complete` needs */
  async begin(): Promise<Begun> {
    try {
      const configuration = await this.#configuration()
      const attempt = { state: randomState(), nonce: randomNonce(), verifier: randomPKCECodeVerifier() }
      const url = buildAuthorizationUrl(configuration, {
        redirect_uri: this.#options.redirectUri.href,
        scope: SCOPE,
        state: attempt.state,
        nonce: attempt.nonce,
        code_challenge: await calculatePKCECodeChallenge(attempt.verifier),
        code_challenge_method: 'S256',
      })
      return { kind: 'begun', url: url.href, attempt }
    } catch (error) {
      return { kind: 'unreachable', reason: reasonOf(error) }
    }
  }

  /** @param answer the query string with which the provider sent the browser back */
  async complete(answer: string, { state, nonce, verifier }: Attempt): Promise<Completed> {
    try {
      const configuration = await this.#configuration()
      const url = new URL(this.#options.redirectUri)
      url.search = answer
      const tokens = await authorizationCodeGrant(configuration, url, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      })
      const { iss: issuer, sub: subject, ...claims } = tokens.claims()!
      if (subject === '' || subject.length > MAX_SUBJECT_LENGTH) return { kind: 'failed', reason: 'invalid subject' }
      const readEmail = () => this.#readEmail(configuration, claims, tokens.access_token, subject)
      return { kind: 'identified', issuer, subject, readEmail }
    } catch (error) {
      if (error instanceof AuthorizationResponseError && error.error === 'access_denied') return { kind: 'denied' }
      return { kind: isUnreachable(error) ? 'unreachable' : 'failed', reason: reasonOf(error) }
    }
  }

  /** Some providers report the e-mail address, or whether it is verified, only on request. */
  async #readEmail(
    configuration: Configuration,
    claims: Record<string, unknown>,
    accessToken: string,
    subject: string,
  ): Promise<EmailRead> {
    const isWhole = claims['email'] !== undefined && claims['email_verified'] !== undefined
    if (isWhole || !configuration.serverMetadata().userinfo_endpoint) return { email: emailOf(claims), problem: null }
    try {
      return { email: emailOf(await fetchUserInfo(configuration, accessToken, subject)), problem: null }
    } catch (error) {
      return { email: null, problem: reasonOf(error) }
    }
  }

  async #configuration(): Promise<Configuration> {
    if (this.#known !== null && performance.now() < this.#known.until) return this.#known.configuration
    return this.#discover()
  }

  async #readConfiguration(): Promise<Configuration> {
    const { issuer, clientId, clientSecret } = this.#options
    const configuration = await discovery(
      issuer,
      clientId,
      { [clockTolerance]: CLOCK_TOLERANCE_SECONDS },
      (server, client, body, headers) => {
        const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
        const usesBasic = methods.includes('client_secret_basic') || !methods.includes('client_secret_post')
        const authenticate = usesBasic ? ClientSecretBasic(clientSecret) : ClientSecretPost(clientSecret)
        authenticate(server, client, body, headers)
      },
      {
        [customFetch]: fetchAtMost,
        timeout: this.#timeoutMs / 1_000,
        // The settings accept http only on loopback.
        execute: [enableNonRepudiationChecks, ...(issuer.protocol === 'http:' ? [allowInsecureRequests] : [])],
      },
    )
    this.#known = { configuration, until: performance.now() + KEPT_MS }
    return configuration
  }
}

/** Some providers, such as Amazon Cognito, write the boolean as text. */
function emailOf({ email, email_verified: verified }: Record<string, unknown>) {
  return typeof email === 'string' ? { address: email, isVerified: verified === true || verified === 'true' } : null
}
