import { createServer } from 'node:net'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { until } from '../until.ts'
import { Stage } from './stage.ts'

const RECIPIENT = '5511987654321'
/** The browser's own lines about a service that is away. */
const NOT_REACHED = /net::ERR_|Failed to load resource|Failed to fetch dynamically imported module/

describe('while deliveries fail', () => {
  let stage: Stage
  beforeAll(async () => {
    stage = await Stage.start({ WEBHOOK_RETRY_DELAYS_MS: '100' })
  })
  afterAll(() => stage.dispose())

  /** An instance whose webhook has refused every event of one message, each until it was given up. */
  async function createRefused(name: string): Promise<string> {
    const { id, token } = await stage.service.admin.createConnected(name)
    const instance = stage.service.instance(id, token)
    await instance.setWebhook(stage.receiver.url)
    stage.receiver.answerWith({ kind: 'status', status: 500 })
    await instance.send(RECIPIENT, 'Hello')
    await until('three events given up', async () => {
      return (await stage.service.admin.listEvents(id, '?state=exhausted')).length === 3
    })
    return id
  }

  test('the list and the overview warn of events that were given up, until they are delivered', async () => {
    const id = await createRefused('Refused')
    const page = await stage.openSignedIn('/')
    const row = page.getByRole('row').filter({ hasText: id })
    await row.getByText('Failing').waitFor()
    await row.getByText('3 events given up').waitFor()

    await row.getByRole('link').click()
    const warning = page.getByRole('alert').filter({ hasText: 'Events do not reach your webhook' })
    await warning.getByText('3 events of the last 7 days were given up').waitFor()
    await warning.getByText('It has never accepted an event').waitFor()
    await warning.getByRole('link', { name: 'Show why, and redeliver' }).waitFor()
    await page.getByRole('navigation', { name: 'Sections' }).getByText('Messages').click()
    await page.getByRole('link', { name: 'Webhook: Failing' }).waitFor()

    stage.receiver.answerWith({ kind: 'status', status: 200 })
    await page.getByRole('link', { name: 'Webhook: Failing' }).click()
    await page.getByRole('button', { name: 'Redeliver…' }).click()
    await page.getByRole('button', { name: 'Redeliver 3 events' }).click()
    await page.getByText('All done.').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('navigation', { name: 'Sections' }).getByText('Overview').click()
    await warning.waitFor({ state: 'detached' })
    await page.getByRole('link', { name: 'Instances', exact: true }).click()
    await row.getByText('last delivered').waitFor()
    expect(await row.getByText('Failing').count()).toBe(0)
    expect(stage.complaints).toEqual([])
  })

  test('a webhook that works again still shows what was given up', async () => {
    const id = await createRefused('Works again')
    stage.receiver.answerWith({ kind: 'status', status: 200 })
    await stage.service.admin.writeAsContact(id, { from: RECIPIENT, text: 'Hello back' })
    const page = await stage.openSignedIn(`/instances/${id}`)
    const warning = page.getByRole('alert').filter({ hasText: 'Your webhook has missed events' })
    await warning.getByText('3 events of the last 7 days were given up').waitFor()
    await warning.getByText('It last accepted an event').waitFor()
  })

  test('the same in Portuguese', async () => {
    const id = await createRefused('Loja')
    const page = await stage.openSignedIn('/', { locale: 'pt-BR' })
    const row = page.getByRole('row').filter({ hasText: id })
    await row.getByText('Falhando').waitFor()
    await row.getByText('3 eventos abandonados').waitFor()
    await row.getByRole('link').click()
    await page.getByRole('alert').getByText('Os eventos não chegam ao seu webhook').waitFor()
  })
})

describe('while the service is away', () => {
  let stage: Stage
  beforeAll(async () => {
    stage = await Stage.start({ PORT: String(await freePort()) })
  })
  afterAll(() => stage.dispose())

  /** Gone as after a crash; back on the same address at the end of the test. */
  async function takeAway(): Promise<() => Promise<unknown>> {
    await stage.service.kill('SIGKILL')
    const comeBack = async () => {
      if (stage.service.url === null) await stage.service.start()
    }
    onTestFinished(async () => {
      await comeBack()
      expect(stage.complaints.filter(line => !NOT_REACHED.test(line))).toEqual([])
      stage.complaints.length = 0
    })
    return comeBack
  }

  /** Nothing on the page says that all is well. */
  async function claimsOn(page: Page): Promise<number> {
    const claims = page.getByText('Messages are sent and received').or(page.getByText('Connected', { exact: true }))
    return (await claims.count()) + (await page.locator('main [data-tone="good"]').count())
  }

  test('no page says that a number is connected, and all say since when nothing is known', async () => {
    const { id } = await stage.service.admin.createConnected('Away')
    const page = await stage.openSignedIn(`/instances/${id}`)
    await page.getByText('Messages are sent and received.').waitFor()
    const list = await stage.openSignedIn('/')
    const row = list.getByRole('row').filter({ hasText: id })
    await row.getByText('Connected', { exact: true }).waitFor()
    const comeBack = await takeAway()
    for (const [shown, badge] of [
      [page, page.getByText('Last known: Connected').first()],
      [list, row.getByText('Last known: Connected')],
    ] as const) {
      await shown.getByRole('alert').getByText('The service does not answer').first().waitFor()
      await shown.getByText('No answer since').waitFor()
      await badge.waitFor()
      expect(await claimsOn(shown)).toBe(0)
    }
    await comeBack()
    await row.getByText('Connected', { exact: true }).waitFor()
    await page.getByText('Messages are sent and received.').waitFor()
    for (const shown of [page, list]) await shown.getByText('No answer since').waitFor({ state: 'detached' })
  })

  test('a service that hangs with its connections open is found out too', async () => {
    const { id } = await stage.service.admin.createConnected('Hangs')
    const page = await stage.openSignedIn(`/instances/${id}`, { locale: 'pt-BR' })
    await page.getByText('As mensagens são enviadas e recebidas.').waitFor()
    stage.service.signal('SIGSTOP')
    onTestFinished(() => stage.service.signal('SIGCONT'))
    await page.getByRole('alert').getByText('O serviço não responde').first().waitFor()
    await page.getByText('Último estado: Conectada').first().waitFor()
    stage.service.signal('SIGCONT')
    await page.getByText('As mensagens são enviadas e recebidas.').waitFor()
  })

  test('a message that gets no answer is said not to be tried again; sent again by hand, it goes out once', async () => {
    const { id } = await stage.service.admin.createConnected('Unanswered')
    const page = await stage.openSignedIn(`/instances/${id}`)
    await page.getByLabel('Text', { exact: true }).fill('Only once')
    // The service takes it, and the answer is lost.
    let taken = 0
    await page.route(/\/messages$/, async route => {
      if (route.request().method() !== 'POST') return route.continue()
      taken += 1
      await route.fetch()
      await route.abort('connectionreset')
    })
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    const problem = page.getByRole('alert').filter({ hasText: 'not resent automatically' })
    await problem.waitFor()
    expect(await page.getByText('keeps trying').count()).toBe(0)
    expect(taken).toBe(1)
    await page.unrouteAll({ behavior: 'wait' })
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.getByText('The recipient has opened it.').waitFor()
    expect(await stage.service.admin.listMessages(id)).toHaveLength(1)
    stage.complaints.length = 0
  })

  test('a section that is opened then keeps the panel, and shows itself once the service is back', async () => {
    const { id } = await stage.service.admin.createConnected('Sections')
    const page = await stage.openSignedIn('/sign-in')
    // Nothing is read ahead: the section's script is not there yet.
    await page.route(/\/assets\/webhook-/, route => route.abort('connectionrefused'))
    await page.goto(`${stage.url}/instances/${id}`)
    await page.getByText('Messages are sent and received.').waitFor()
    const comeBack = await takeAway()
    await page.getByRole('navigation', { name: 'Sections' }).getByText('Webhook').click()
    await page.getByRole('alert').getByText('The service does not answer').first().waitFor()
    await page.getByRole('heading', { level: 1, name: 'Sections' }).waitFor()
    await page.unrouteAll({ behavior: 'wait' })
    await comeBack()
    await page.getByLabel('URL').waitFor()
  })

  test('a page that is opened while the service cannot answer shows itself once it can', async () => {
    const { id } = await stage.service.admin.createConnected('Opened early')
    const page = await stage.openSignedIn('/')
    await page.route(/\/admin\/v1\//, route => route.abort('connectionrefused'))
    await page.goto(`${stage.url}/instances/${id}`)
    await page.getByText('The service does not answer').first().waitFor()
    await page.unrouteAll({ behavior: 'wait' })
    await page.getByText('Messages are sent and received.').waitFor()
    stage.complaints.length = 0
  })

  test.each(['/instances', '/instances/', '/settings/', '/instances/inst_nowhere/'])(
    'the address %s, typed or reloaded, shows the panel',
    async path => {
      const page = await stage.openSignedIn('/')
      const response = await page.goto(stage.url + path)
      expect([response?.status(), response?.headers()['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
      await page.locator('h1').waitFor()
      if (path.startsWith('/instances') && !path.includes('inst_')) {
        await page.getByRole('heading', { name: 'Instances' }).waitFor()
      }
      expect(stage.complaints).toEqual([])
    },
  )
})

function freePort(): Promise<number> {
  return new Promise(resolve => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}
