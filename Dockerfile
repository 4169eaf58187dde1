# The command line on a CPU. Build: docker build -t diptych . (other extras: --build-arg EXTRAS=train)
# Run: docker run --rm -v "$PWD:/work" diptych evaluate rows:embeddings --data dataset --out result
FROM python:3.12-slim AS build
ARG EXTRAS=commerce
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m venv /opt/diptych \
 && /opt/diptych/bin/pip install --no-cache-dir --constraint constraints.txt ".[${EXTRAS}]"

FROM python:3.12-slim
COPY --from=build /opt/diptych /opt/diptych
RUN useradd --create-home --uid 1000 diptych
USER diptych
ENV PATH=/opt/diptych/bin:$PATH
WORKDIR /work
ENTRYPOINT ["diptych"]
CMD ["--help"]
