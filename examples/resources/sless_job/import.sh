terraform import sless_job.migrate shop/orders-migrate
