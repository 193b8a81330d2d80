import type { ReactNode } from 'react'
import classes from './panels.module.css'

interface CardProps {
  title?: ReactNode
  hint?: ReactNode
  action?: ReactNode
  children?: ReactNode
  tone?: 'plain' | 'danger'
}

/** A section of a page with its own heading. */
export function Card({ title, hint, action, children, tone = 'plain' }: CardProps) {
  return (
    <section className={classes.card} data-tone={tone}>
      {(title || action) && (
        <header className={classes.head}>
          <div>
            {title && <h2 className={classes.title}>{title}</h2>}
            {hint && <p className={classes.hint}>{hint}</p>}
          </div>
          {action && <div className={classes.action}>{action}</div>}
        </header>
      )}
      {children}
    </section>
  )
}

interface EmptyProps {
  title: string
  /** 1 if it is the only content of the page. */
  level?: 1 | 2
  children?: ReactNode
  action?: ReactNode
}

/** Explains an empty page and the next step. */
export function Empty({ title, level = 2, children, action }: EmptyProps) {
  const Heading = level === 1 ? 'h1' : 'h2'
  return (
    <div className={classes.empty}>
      <svg width="72" height="72" viewBox="0 0 32 32" aria-hidden focusable="false">
        <path className={classes.niche} d="M4 30V14a12 12 0 0 1 24 0v16z" />
        <path
          className={classes.bird}
          d="M6.8 16.2c3 .5 5-.7 6.2-3.2 1.2-2.6 3-4 5.5-4 2 0 3.4.9 4 2.300l2.6.9-2.3 1.400c-.2 5.3-3.9 9.1-9.2 9.100H9.400l2.8-2.600c-2.8-.5-4.7-1.7-5.4-3.900z"
        />
      </svg>
      <Heading className={classes.emptyTitle}>{title}</Heading>
      {children && <div className={classes.emptyText}>{children}</div>}
      {action}
    </div>
  )
}

interface PageHeadProps {
  title: ReactNode
  action?: ReactNode
  children?: ReactNode
  /** 2 on a page of an instance, whose name is the first heading. */
  level?: 1 | 2
}

export function PageHead({ title, action, children, level = 1 }: PageHeadProps) {
  const Heading = level === 1 ? 'h1' : 'h2'
  return (
    <div className={classes.pageHead}>
      <div>
        <Heading className={classes.pageTitle}>{title}</Heading>
        {children && <div className={classes.hint}>{children}</div>}
      </div>
      {action && <div className={classes.action}>{action}</div>}
    </div>
  )
}

export function Facts({ children }: { children: ReactNode }) {
  return <dl className={classes.facts}>{children}</dl>
}

export function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className={classes.fact}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}
