import { useQuery } from '@tanstack/react-query'
import { Link, useLocation, useNavigate, useParams } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import { Problem } from '../../components/feedback/problem.tsx'
import { Waiting } from '../../components/feedback/waiting.tsx'
import { useTitle } from '../../components/title.ts'
import { useLanguage, useWords } from '../../i18n/i18n.tsx'
import { reloadOnFailure } from '../../reload-on-failure.ts'
import { NotFound } from '../../shell.tsx'
import classes from './guides.module.css'
import { findGuide, GUIDES, type Guide } from './names.ts'

/** Each guide is a script of its own, loaded when it is opened. */
const CONTENT: Record<Guide, () => Promise<{ html: string }>> = {
  panel: () => import('../../../../docs/panel.md?guide'),
  webhooks: () => import('../../../../docs/webhooks.md?guide'),
  feed: () => import('../../../../docs/feed.md?guide'),
  errors: () => import('../../../../docs/errors.md?guide'),
  limits: () => import('../../../../docs/limits.md?guide'),
  'whatsapp-situations': () => import('../../../../docs/whatsapp-situations.md?guide'),
  alerts: () => import('../../../../docs/alerts.md?guide'),
  operations: () => import('../../../../docs/operations.md?guide'),
  migrating: () => import('../../../../docs/migrating.md?guide'),
  backup: () => import('../../../../docs/backup.md?guide'),
  security: () => import('../../../../docs/security.md?guide'),
  metrics: () => import('../../../../docs/metrics.md?guide'),
  contract: () => import('../../../../docs/contract.md?guide'),
}

export function Guides() {
  const { name } = useParams({ strict: false })
  const guide = findGuide(name ?? GUIDES[0])
  return guide === undefined ? <NotFound /> : <OneGuide guide={guide} />
}

function OneGuide({ guide }: { guide: Guide }) {
  const words = useWords()
  const { language } = useLanguage()
  useTitle(words.guides.names[guide], words.guides.title)
  const { data, error, refetch } = useQuery({
    queryKey: ['guide', guide],
    queryFn: reloadOnFailure(CONTENT[guide]),
    staleTime: Number.POSITIVE_INFINITY,
  })
  return (
    <div className={classes.page}>
      <nav aria-label={words.guides.title} className={classes.list}>
        {GUIDES.map(name => (
          <Link key={name} to="/guides/$name" params={{ name }} aria-current={name === guide ? 'page' : undefined}>
            {words.guides.names[name]}
          </Link>
        ))}
        <a href="/docs/">{words.shell.apiReference}</a>
      </nav>
      <div className={classes.content}>
        {language !== 'en' && <p className={classes.note}>{words.guides.inEnglish}</p>}
        {error && <Problem error={error} onRetry={() => void refetch()} />}
        {data ? <Content html={data.html} /> : !error && <Waiting />}
      </div>
    </div>
  )
}

/** The HTML was made of our own documents when the panel was built. */
function Content({ html }: { html: string }) {
  const article = useRef<HTMLElement>(null)
  const navigate = useNavigate()
  const { hash } = useLocation()
  // A link to another guide keeps the app.
  useEffect(() => {
    const open = (event: MouseEvent) => {
      const link = event.target instanceof Element ? event.target.closest('a') : null
      if (!link || link.target || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
      event.preventDefault()
      void navigate({ to: link.pathname, hash: link.hash.slice(1) })
    }
    const element = article.current
    element?.addEventListener('click', open)
    return () => element?.removeEventListener('click', open)
  }, [navigate])
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new text is scrolled too
  useEffect(() => {
    document.getElementById(hash)?.scrollIntoView()
  }, [hash, html])
  // biome-ignore lint/security/noDangerouslySetInnerHtml: our own documents, escaped while the panel is built
  return <article ref={article} lang="en" className={classes.text} dangerouslySetInnerHTML={{ __html: html }} />
}
