import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { CONDITION_WITHIN_MS } from '../deadlines.ts'
import { Receiver } from '../receiver.ts'
import { type Service, startService } from '../service.ts'
import { launchBrowser } from './chromium.ts'

export const ADMIN_KEY = 'an-admin-key-for-tests-of-the-panel-0001'
/** The browser's own console line for a 4xx response, which the panel handles. */
const REFUSED = /the server responded with a status of 4\d\d/

/** A running service, a browser, and a receiver for its webhooks. */
export class PanelHarness {
  readonly service: Service
  readonly receiver: Receiver
  readonly #browser: Browser
  /** Console errors of the pages: violations of the policy, exceptions, failed loads. */
  readonly complaints: string[] = []

  private constructor(service: Service, receiver: Receiver, browser: Browser) {
    this.service = service
    this.receiver = receiver
    this.#browser = browser
  }

  /** @param nodeOptions for the service's Node */
  static async start(env: Record<string, string> = {}, nodeOptions: readonly string[] = []): Promise<PanelHarness> {
    const [service, receiver, browser] = await Promise.all([
      startService({ env: { ADMIN_KEY, LOG_LEVEL: 'warn', ...env }, nodeOptions }),
      new Receiver().listen(),
      launchBrowser(),
    ])
    return new PanelHarness(service, receiver, browser)
  }

  get url(): string {
    return this.service.url!
  }

  /** Opens a page in a new browser context, without cookies. */
  async open(path = '/', options: BrowserContextOptions = {}): Promise<Page> {
    const page = await this.#openTab(options)
    await page.goto(this.url + path)
    return page
  }

  /** Opens a page, signed in with the admin key. The sign-in page is not shown. */
  async openSignedIn(path = '/', options: BrowserContextOptions = {}): Promise<Page> {
    const page = await this.#openTab(options)
    // Keeps the session's cookie in the context.
    const answer = await page.request.post(`${this.url}/admin/v1/session`, { data: { key: ADMIN_KEY } })
    if (!answer.ok()) throw new Error(`The sign-in was answered with ${answer.status()}.`)
    await page.goto(this.url + path)
    return page
  }

  /** Closes all pages. An open page keeps reading events and drawing, which slows down the tests that follow. */
  async closePages(): Promise<void> {
    await Promise.all(this.#browser.contexts().map(context => context.close()))
  }

  async #openTab(options: BrowserContextOptions): Promise<Page> {
    const context = await this.#browser.newContext({
      locale: 'en-GB',
      viewport: { width: 1280, height: 860 },
      ...options,
    })
    context.setDefaultTimeout(CONDITION_WITHIN_MS)
    const page = await context.newPage()
    page.on('pageerror', error => this.complaints.push(error.message))
    page.on('console', message => {
      if (message.type() === 'error' && !REFUSED.test(message.text())) this.complaints.push(message.text())
    })
    return page
  }

  async dispose(): Promise<void> {
    await this.#browser.close()
    await this.receiver.close()
    await this.service.dispose()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.dispose()
  }
}

export async function signIn(page: Page, key = ADMIN_KEY): Promise<void> {
  await page.locator('input[type="password"]').fill(key)
  await page.keyboard.press('Enter')
  await page.waitForURL(url => url.pathname !== '/sign-in')
}
